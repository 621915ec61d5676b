import NetOptCore

/// The fields by which traces tell one request from another. What a request asks for does not depend on them.
enum RequestTrace {
  /// W3C Trace Context, Zipkin's B3, and the names in which proxies and clouds number requests, in small letters.
  private static let names: Set = [
    "traceparent", "tracestate", "b3", "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "x-b3-sampled",
    "x-b3-flags", "x-request-id", "request-id", "x-correlation-id", "x-amzn-trace-id",
    "x-cloud-trace-context",
  ]

  /// Fields without those of traces.
  static func left(_ fields: HeaderFields) -> HeaderFields {
    var left = fields
    left.removeAll { names.contains($0.name.loweredASCII) }
    return left
  }

  /// Whether requests differ in nothing but how they are traced.
  static func areAlike(_ one: HeaderFields, _ other: HeaderFields) -> Bool {
    one == other || left(one) == left(other)
  }
}
