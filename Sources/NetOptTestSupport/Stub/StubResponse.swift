public import NetOptCore

/// The outcome of a request that was sent.
public enum StubAnswer: Sendable {
  /// The endpoint sends a response.
  case response(StubResponse)
  /// The endpoint resets the connection before a response begins.
  case reset
  /// The endpoint sends nothing.
  case silence

  /// The endpoint sends a response.
  public static func respond(
    _ status: Int = 200, fields: HeaderFields = [:], body: [UInt8] = []
  ) -> StubAnswer {
    .response(StubResponse(status, fields: fields, body: body))
  }

  /// The endpoint sends a response with this text in UTF-8.
  public static func respond(_ status: Int = 200, fields: HeaderFields = [:], text: String) -> StubAnswer {
    .response(StubResponse(status, fields: fields, text: text))
  }

  /// The endpoint sends a response with this value as JSON, with the media type `application/json` unless
  /// `fields` has one.
  ///
  /// - Throws: `invalidRequest` if the value cannot be encoded.
  public static func respond(
    _ status: Int = 200, fields: HeaderFields = [:], json value: some Encodable
  ) throws(NetOptError) -> StubAnswer {
    .response(try StubResponse(status, fields: fields, json: value))
  }
}

/// The response of an endpoint of a `StubTransport`.
public struct StubResponse: Sendable {
  /// How the body ends.
  public enum End: Sendable {
    /// The body is complete.
    case complete
    /// The endpoint resets the connection after the last chunk.
    case cut
    /// The endpoint sends nothing after the last chunk and keeps the connection open, so the body does not
    /// end.
    case stalled
  }

  /// The status code.
  public var status: Int
  /// The header fields. The stub adds no fields.
  public var fields: HeaderFields
  /// Returns the chunk with an index from 0, or `nil` after the last chunk. The stub calls this when the
  /// consumer asks for the chunk, and never reads ahead.
  public var chunk: @Sendable (Int) -> [UInt8]?
  /// How the body ends.
  public var end: End

  /// Creates a response from chunks.
  public init(
    _ status: Int = 200, fields: HeaderFields = [:], end: End = .complete,
    chunk: @escaping @Sendable (Int) -> [UInt8]?
  ) {
    self.status = status
    self.fields = fields
    self.end = end
    self.chunk = chunk
  }

  /// Creates a response with a body of one chunk, or of no chunk when `body` is empty.
  public init(_ status: Int = 200, fields: HeaderFields = [:], body: [UInt8] = [], end: End = .complete) {
    self.init(status, fields: fields, end: end) { $0 == 0 && !body.isEmpty ? body : nil }
  }

  /// Creates a response with a text as its body, in UTF-8.
  public init(_ status: Int = 200, fields: HeaderFields = [:], text: String) {
    self.init(status, fields: fields, body: Array(text.utf8))
  }

  /// Creates a response with a value as its body, encoded as `RequestBody.json` encodes it, with the media
  /// type `application/json` unless `fields` has one.
  ///
  /// - Throws: `invalidRequest` if the value cannot be encoded.
  public init(_ status: Int = 200, fields: HeaderFields = [:], json value: some Encodable) throws(NetOptError)
  {
    var fields = fields
    if !fields.contains(name: "Content-Type") { fields["Content-Type"] = "application/json" }
    let body: [UInt8] = if case .bytes(let bytes) = try RequestBody.json(value).source { bytes } else { [] }
    self.init(status, fields: fields, body: body)
  }
}
