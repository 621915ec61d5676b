public import NetOptCore

/// What becomes of a request that was sent.
public enum StubAnswer: Sendable {
  /// It is answered.
  case response(StubResponse)
  /// The connection is reset before an answer begins.
  case reset
  /// Nothing comes.
  case silence
}

/// What an endpoint of a `StubTransport` answers.
public struct StubResponse: Sendable {
  /// How the body ends.
  public enum End: Sendable {
    /// As it should.
    case complete
    /// The connection is reset after the last chunk.
    case cut
    /// Nothing comes after the last chunk.
    case stalled
  }

  /// The status code.
  public var status: Int
  /// The header fields; nothing is added to them.
  public var fields: HeaderFields
  /// The chunk with an index from 0, or `nil` after the last one. It is asked for when the consumer wants it: nothing
  /// is read ahead.
  public var chunk: @Sendable (Int) -> [UInt8]?
  /// How the body ends.
  public var end: End

  /// Makes a response from chunks.
  public init(
    _ status: Int = 200, fields: HeaderFields = [:], end: End = .complete,
    chunk: @escaping @Sendable (Int) -> [UInt8]?
  ) {
    self.status = status
    self.fields = fields
    self.end = end
    self.chunk = chunk
  }

  /// Makes a response whose body is one chunk, or none when it is empty.
  public init(_ status: Int = 200, fields: HeaderFields = [:], body: [UInt8] = [], end: End = .complete) {
    self.init(status, fields: fields, end: end) { $0 == 0 && !body.isEmpty ? body : nil }
  }
}
