/// What is known of a request that passed the gate, when no answer came: whether a server may have processed it (docs/adr/0026).
///
/// A value without I/O. What is not known to be safe is `unknown`.
struct SentRequest: Equatable {
  /// What a server may have made of a request.
  enum Fate: Equatable, Sendable {
    /// It may have been processed.
    case unknown
    /// Nothing of it was written, or not all of its head.
    case unwritten
    /// The server refused its stream: it did not process it (REFUSED_STREAM; RFC 9113, section 8.7).
    case refused
    /// The server refused its stream, and had said meanwhile that it takes fewer at once than was known when the request was written: with its first
    /// SETTINGS, which a client does not wait for (RFC 9113, section 3.4), or later ones.
    case overLimit
    /// The server ended the connection with GOAWAY, and did not process this stream (RFC 9113, section 6.8).
    case leftOut

    /// Whether the request may be sent again, whatever its method.
    var isSafe: Bool { self != .unknown }
  }

  /// What carried the request.
  enum Connection: Equatable, Sendable {
    /// HTTP/1.1.
    case http1
    /// HTTP/2, with all of its frames in sight.
    ///
    /// - lastStream: that of the GOAWAY which the server has sent, if it has.
    case http2(lastStream: Int32?)
    /// HTTP/2 whose frames are not all seen.
    case unseen
  }

  /// Whether bytes of it may have been written over HTTP/1.1.
  private var isWritten: Bool
  /// The stream of HTTP/2 on which the head was written, in part at least.
  private var stream: Int32?
  /// How many streams the server was known to take at once, then.
  private var limit: UInt32 = 0
  private var refusal: Fate?
  private(set) var isAnswered = false

  /// - Parameter seesWrites: whether `wasWritten` is called when bytes of it are written over HTTP/1.1.
  init(seesWrites: Bool = false) { isWritten = !seesWrites }

  /// Whether it is known that nothing of it was written over HTTP/1.1.
  var isUnwritten: Bool { !isWritten }

  /// Bytes of it were written over HTTP/1.1.
  mutating func wasWritten() { isWritten = true }

  /// The head is about to be written on a stream.
  ///
  /// - Parameter limit: how many streams the server is known to take at once.
  mutating func writes(on stream: Int32, limit: UInt32) {
    self.stream = stream
    self.limit = limit
  }

  /// The server has refused the stream.
  ///
  /// - Parameter limit: how many it is known to take at once by now. One that takes none would refuse the next try as well.
  mutating func wasRefused(limit: UInt32) {
    refusal = limit > 0 && limit < self.limit ? .overLimit : .refused
  }

  /// Something of an answer has come, be it an interim one. What the server then says of the request contradicts it.
  mutating func wasAnswered() { isAnswered = true }

  /// What the server may have made of the request, when its connection or its stream has ended.
  func fate(on connection: Connection) -> Fate {
    if isAnswered { return .unknown }
    switch connection {
    case .http1: return isWritten ? .unknown : .unwritten
    case .http2(let lastStream):
      guard let stream else { return .unwritten }
      if let refusal { return refusal }
      if let lastStream, stream > lastStream { return .leftOut }
      return .unknown
    case .unseen: return .unknown
    }
  }
}
