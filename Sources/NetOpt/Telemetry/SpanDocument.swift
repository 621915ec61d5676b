import NetOptCore

/// Writes spans as an export request of OTLP in JSON (ExportTraceServiceRequest,
/// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). The names of attributes are those of
/// OpenTelemetry's semantic conventions for HTTP clients, and begin with `netopt.` where these have none.
///
/// The bytes are written without a tree of JSON values, because there are two spans for each request.
struct SpanDocument {
  private(set) var bytes: [UInt8] = []
  /// Whether the next attribute is the first of its list.
  private var isFirst = true

  /// The version of the semantic conventions.
  private static let schemaURL: StaticString = "https://opentelemetry.io/schemas/1.37.0"
  /// The most characters of a text.
  private static let longestText = 2048

  init(_ spans: [Span], of telemetry: ClientConfiguration.Telemetry) {
    bytes.reserveCapacity(1024 * spans.count + 512)
    bytes.append(text: #"{"resourceSpans":[{"resource":{"attributes":["#)
    beginList()
    attribute("service.name", telemetry.serviceName)
    for (key, value) in telemetry.resource.sorted(by: { $0.key < $1.key }) where key != "service.name" {
      attribute(key, value)
    }
    bytes.append(text: #"]},"scopeSpans":[{"scope":{"name":"netopt","version":"#)
    JSONValue.append(string: NetOptVersion.string, to: &bytes)
    bytes.append(text: #"},"spans":["#)
    for (index, span) in spans.enumerated() {
      if index > 0 { bytes.append(0x2c) }
      append(span)
    }
    bytes.append(text: #"],"schemaUrl":""#)
    bytes.append(text: Self.schemaURL)
    bytes.append(text: #""}]}]}"#)
  }

  private mutating func append(_ span: Span) {
    bytes.append(text: #"{"traceId":""#)
    bytes.append(span.context.traceID)
    bytes.append(text: #"","spanId":""#)
    bytes.append(hex: span.context.spanID, digits: 16)
    if let parent = span.parentID {
      bytes.append(text: #"","parentSpanId":""#)
      bytes.append(hex: parent, digits: 16)
    }
    bytes.append(text: #"""#)
    if let state = span.context.state {
      bytes.append(text: #","traceState":"#)
      JSONValue.append(string: state, to: &bytes)
    }
    bytes.append(text: #","flags":"#)
    bytes.append(decimal: Int64(span.context.flags) | span.origin)
    bytes.append(text: #","name":"#)
    let request = span.request
    let isCall = if case .call = span.kind { true } else { false }
    let isKnown = CallMetrics.methods.contains(request.method)
    // The conventions name a method that they do not know HTTP, because names must have few values.
    let method = isKnown ? request.method.rawValue : "HTTP"
    text(isCall ? request.tag ?? method : method)
    // 1 is INTERNAL, 3 is CLIENT.
    bytes.append(text: isCall ? #","kind":1"# : #","kind":3"#)
    bytes.append(text: #","startTimeUnixNano":""#)
    bytes.append(decimal: span.started.nanoseconds.addingClamped(span.epoch))
    bytes.append(text: #"","endTimeUnixNano":""#)
    bytes.append(decimal: span.ended.nanoseconds.addingClamped(span.epoch))
    bytes.append(text: #"","attributes":["#)
    beginList()
    appendAttributes(of: span, hasKnownMethod: isKnown)
    bytes.append(0x5d)
    appendLegs(of: span)
    appendStatus(of: span.result)
    bytes.append(0x7d)
  }

  private mutating func appendAttributes(of span: Span, hasKnownMethod isKnown: Bool) {
    let (request, result) = (span.request, span.result)
    attribute("http.request.method", isKnown ? request.method.rawValue : CallMetrics.other)
    if !isKnown { attribute("http.request.method_original", request.method.rawValue) }
    attribute("server.address", request.url.host)
    attribute("server.port", Int64(request.url.port))
    attribute("url.full", request.url.shown)
    if let tag = request.tag { attribute("netopt.tag", tag) }
    if let status = result.status { attribute("http.response.status_code", Int64(status)) }
    if let type = result.errorType { attribute("error.type", type) }
    if let version = result.version { attribute("network.protocol.version", version.rawValue) }
    if let remote = result.remote {
      attribute("network.peer.address", remote.address.description)
      attribute("network.peer.port", Int64(remote.port))
    }
    if let cache = result.cache, cache != .off { attribute("netopt.cache", cache.rawValue) }
    guard case .attempt(let earlier, let reason) = span.kind else { return }
    if earlier > 0 { attribute("http.request.resend_count", Int64(earlier)) }
    if result.status != nil { attribute("netopt.connection.reused", result.reused) }
    if result.sends > 1 { attribute("netopt.sends", Int64(result.sends)) }
    if result.isOvertaken { attribute("netopt.attempt.overtaken", true) }
    if reason != .first { attribute("netopt.attempt.reason", reason.rawValue) }
    if let route = result.route, !route.legs.isEmpty { attribute("netopt.route", route.source.rawValue) }
  }

  /// Writes the legs of an attempt's race as events, if there was a race or a failure.
  private mutating func appendLegs(of span: Span) {
    guard let route = span.result.route, !route.isShared,
      route.legs.count > 1 || route.legs.contains(where: { $0.outcome == .failed })
    else { return }
    bytes.append(text: #","events":["#)
    for (index, leg) in route.legs.enumerated() {
      if index > 0 { bytes.append(0x2c) }
      bytes.append(text: #"{"name":"netopt.leg","timeUnixNano":""#)
      let ended = span.result.callStarted.nanoseconds.addingClamped(leg.endedNanoseconds)
      bytes.append(decimal: ended.addingClamped(span.epoch))
      bytes.append(text: #"","attributes":["#)
      beginList()
      if let address = leg.address { attribute("network.peer.address", address.description) }
      attribute("netopt.leg.outcome", leg.outcome.rawValue)
      attribute("netopt.leg.source", leg.source.rawValue)
      if let failure = leg.failure { attribute("netopt.leg.failure", failure.message) }
      bytes.append(text: "]}")
    }
    bytes.append(0x5d)
  }

  private mutating func appendStatus(of result: SpanResult) {
    guard result.errorType != nil else { return }
    // 2 is ERROR.
    bytes.append(text: #","status":{"code":2"#)
    if let error = result.error {
      bytes.append(text: #","message":"#)
      text(error.message)
    }
    bytes.append(0x7d)
  }

  // MARK: Values

  private mutating func beginList() { isFirst = true }

  private mutating func beginAttribute(_ key: String, _ kind: StaticString) {
    if !isFirst { bytes.append(0x2c) }
    isFirst = false
    bytes.append(text: #"{"key":"#)
    JSONValue.append(string: key, to: &bytes)
    bytes.append(text: #","value":{""#)
    bytes.append(text: kind)
    bytes.append(text: #"":"#)
  }

  private mutating func attribute(_ key: String, _ value: String) {
    beginAttribute(key, "stringValue")
    text(value)
    bytes.append(text: "}}")
  }

  private mutating func attribute(_ key: String, _ value: Int64) {
    beginAttribute(key, "intValue")
    // 64-bit numbers are strings in the JSON of protocol buffers.
    bytes.append(0x22)
    bytes.append(decimal: value)
    bytes.append(text: #""}}"#)
  }

  private mutating func attribute(_ key: String, _ value: Bool) {
    beginAttribute(key, "boolValue")
    bytes.append(text: value ? "true}}" : "false}}")
  }

  /// Appends the start of a text, without what controls a terminal.
  private mutating func text(_ value: String) {
    JSONValue.append(string: value.printable(Self.longestText), to: &bytes)
  }
}

extension Span {
  /// The bits of `flags` that say whether the parent is in another process.
  fileprivate var origin: Int64 {
    switch kind {
    case .attempt: 0x100
    case .call: parentID == nil ? 0 : 0x300
    }
  }
}

extension SpanResult {
  /// Why the span counts as an error, as in the metrics: the status if it is 400 or more, or the error's name.
  fileprivate var errorType: String? {
    if isOvertaken { return nil }
    if let error { return error.code.description }
    return status.flatMap { $0 >= 400 ? String($0) : nil }
  }
}
