import NetOptCore

/// The request fields of distributed tracing. They do not affect the response.
enum RequestTrace {
  /// The names of W3C Trace Context and of Zipkin's B3, and the names that proxies and clouds use for request
  /// numbers, in lower case.
  private static let names: Set = [
    "traceparent", "tracestate", "b3", "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "x-b3-sampled",
    "x-b3-flags", "x-request-id", "request-id", "x-correlation-id", "x-amzn-trace-id",
    "x-cloud-trace-context",
  ]

  /// The fields without the tracing fields.
  static func withoutTracing(_ fields: HeaderFields) -> HeaderFields {
    var rest = fields
    rest.removeAll { names.contains($0.name.loweredASCII) }
    return rest
  }

  /// Whether two requests differ at most in their tracing fields.
  static func haveSameFields(_ one: HeaderFields, _ other: HeaderFields) -> Bool {
    one == other || withoutTracing(one) == withoutTracing(other)
  }
}
