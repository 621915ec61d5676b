/// The progress of a request that passed the gate, the last check of a ready connection before the first byte
/// is written (`Transfer+Gate.swift`). If the request gets no response, `fate(on:)` says whether a server may
/// have processed it (docs/adr/0026).
///
/// A value without I/O. The fate is `unknown` unless sending the request again is certainly safe.
struct SentRequest: Equatable {
  /// Whether a server may have processed a request, and if not, how netopt knows.
  enum Fate: Equatable, Sendable {
    /// The server may have processed the request.
    case unknown
    /// No byte of the request was written.
    case unwritten
    /// The server refused the stream and did not process the request (REFUSED_STREAM; RFC 9113, section 8.7).
    case refused
    /// The server refused the stream in the same way, and the reason is a limit that netopt did not know when
    /// it wrote the request. By the time of the refusal, the server had announced that it allows fewer
    /// concurrent streams than netopt knew of (SETTINGS_MAX_CONCURRENT_STREAMS). The announcement came in the
    /// first SETTINGS frame, for which a client does not wait (RFC 9113, section 3.4), or in a later one.
    case overLimit
    /// The server ended the connection with GOAWAY, and did not process this stream (RFC 9113, section 6.8).
    case leftOut

    /// Whether it is known that no server processed the request. It may then be sent again, whatever its
    /// method.
    var isUnprocessed: Bool { self != .unknown }
  }

  /// The kind of connection that carried the request.
  enum Connection: Equatable, Sendable {
    /// HTTP/1.1.
    case http1
    /// HTTP/2 with all frames observed. `lastStream` is the last stream of the server's GOAWAY, or `nil` when
    /// the server has sent none.
    case http2(lastStream: Int32?)
    /// HTTP/2 when netopt does not observe all frames.
    case unseen
  }

  /// Whether bytes of the request may have been written over HTTP/1.1. True from the start if netopt cannot
  /// observe the writes.
  private var isWritten: Bool
  /// The number of the HTTP/2 stream on which the head was written, at least in part; `nil` if it was not
  /// written.
  private var stream: Int32?
  /// How many concurrent streams the server allowed when the head was written, as far as netopt knew then; 0
  /// before the head is written.
  private var limit: UInt32 = 0
  /// How the server refused the stream: `refused` or `overLimit`. `nil` when the server has not refused it.
  private var refusal: Fate?
  /// Whether a part of a response has come, even an interim response.
  private(set) var responseBegan = false

  /// - Parameter seesWrites: whether `wasWritten` is called when bytes of the request are written over
  ///   HTTP/1.1.
  init(seesWrites: Bool = false) { isWritten = !seesWrites }

  /// Whether certainly no byte of the request was written over HTTP/1.1.
  var isUnwritten: Bool { !isWritten }

  /// Records that bytes of the request were written over HTTP/1.1.
  mutating func wasWritten() { isWritten = true }

  /// Records that the head is about to be written on a stream.
  ///
  /// - Parameter limit: the number of concurrent streams that the server is known to allow.
  mutating func writes(on stream: Int32, limit: UInt32) {
    self.stream = stream
    self.limit = limit
  }

  /// Records that the server refused the stream.
  ///
  /// - Parameter limit: the number of concurrent streams that the server is now known to allow. If it is
  ///   lower than when the head was written, the fate is `overLimit`. But if it is 0, the fate is `refused`,
  ///   because the server would refuse a resend too.
  mutating func streamRefused(limit: UInt32) {
    refusal = limit > 0 && limit < self.limit ? .overLimit : .refused
  }

  /// Records that a part of a response, even an interim response, has come. The fate is then `unknown`: if
  /// the server later says that it did not process the request, it contradicts its own response.
  mutating func receivedResponse() { responseBegan = true }

  /// The fate of the request when its connection or stream has ended.
  func fate(on connection: Connection) -> Fate {
    if responseBegan { return .unknown }
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
