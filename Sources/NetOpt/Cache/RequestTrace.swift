import NetOptCore

/// The request fields of distributed tracing. They differ from request to request and do not affect the
/// response, so calls that differ only in these fields may share a fetch.
enum RequestTrace {
  /// The names of the tracing fields in lower case: those of W3C Trace Context and Zipkin's B3, and those
  /// that proxies and cloud providers use for request ids.
  private static let names: Set = [
    "traceparent", "tracestate", "b3", "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "x-b3-sampled",
    "x-b3-flags", "x-request-id", "request-id", "x-correlation-id", "x-amzn-trace-id",
    "x-cloud-trace-context",
  ]

  /// Returns the fields that are not tracing fields.
  static func withoutTracing(_ fields: HeaderFields) -> HeaderFields {
    var rest = fields
    rest.removeAll { names.contains($0.name.loweredASCII) }
    return rest
  }

  /// Whether two requests have the same fields, apart from tracing fields.
  static func haveSameFields(_ one: HeaderFields, _ other: HeaderFields) -> Bool {
    one == other || withoutTracing(one) == withoutTracing(other)
  }
}
