/// The reason why nghttp2 gave up a stream or a connection: the received frames break a rule of HTTP/2, or
/// exceed a limit of nghttp2 or libcurl.
struct HTTP2Fault: Hashable, Sendable {
  /// The rule or limit because of which nghttp2 gave up the stream or the connection.
  enum Cause: Hashable, Sendable {
    /// nghttp2 ended the stream or the connection with this error code (RFC 9113, section 7).
    case code(UInt32)
    /// The peer sent more frames that require an answer, such as PING, than nghttp2 queues answers for.
    case flood
    /// A head comes in more CONTINUATION frames than nghttp2 accepts.
    case continuations
    /// A callback of libcurl failed because a head is longer than libcurl accepts (128 KiB).
    case room
    /// A callback of libcurl failed, and this release of libcurl has `CurlLibrary.refusesInvalidFrames`. So
    /// either a head is longer than libcurl accepts, or a frame breaks a rule.
    case refusal
  }

  let cause: Cause
  /// Whether nghttp2 gave up the whole connection. If false, it gave up one stream.
  let isOfConnection: Bool
  /// Whether exactly one request used the connection when nghttp2 gave the connection up. The fault is then a
  /// fault of the response to this request. False if nghttp2 gave up only a stream.
  var isOfOneStream = false

  /// The fault to report for a response that ended because of this fault.
  var responseFault: ResponseFault {
    switch cause {
    case .continuations where isOfOneStream: .head(.continuations)
    case .room where isOfOneStream: .head(.tooLargeForLibcurl(kibibytes: 128))
    default: .http2(self)
    }
  }

  /// Returns the message of the error.
  ///
  /// - Parameter peer: the sender of the frames, as messages name it.
  func message(_ peer: String) -> String {
    guard isOfConnection else {
      return "\(peer) sent a response that violates HTTP/2 (\(name); RFC 9113, section 8.1.1)"
    }
    let what =
      switch cause {
      case .code: "violated HTTP/2 (\(name); RFC 9113, section 5.4.1)"
      case .flood: "sent more frames that require an answer than nghttp2 accepts"
      case .continuations: "sent \(HeadFault.continuations.description)"
      case .refusal: "sent an invalid HTTP/2 frame, or a head of more than 128 KiB"
      case .room: "sent \(HeadFault.tooLargeForLibcurl(kibibytes: 128).description)"
      }
    return "\(peer) \(what), so the connection was closed"
  }

  /// The name of the error code (RFC 9113, section 7), or its number; empty if the cause is not a code.
  private var name: String {
    guard case .code(let code) = cause else { return "" }
    return Self.names[code] ?? "error \(code)"
  }

  /// The names of the error codes with which nghttp2 ends streams and connections.
  private static let names: [UInt32: String] = [
    1: "PROTOCOL_ERROR", 2: "INTERNAL_ERROR", 3: "FLOW_CONTROL_ERROR", 4: "SETTINGS_TIMEOUT",
    5: "STREAM_CLOSED", 6: "FRAME_SIZE_ERROR", 9: "COMPRESSION_ERROR", 11: "ENHANCE_YOUR_CALM",
  ]
}
