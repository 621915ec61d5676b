/// Why nghttp2 gave up a stream or a connection: what came on it breaks a rule of HTTP/2, or a limit.
struct HTTP2Fault: Hashable, Sendable {
  /// What it was given up for.
  enum Cause: Hashable, Sendable {
    /// The code that nghttp2 ended it with (RFC 9113, section 7).
    case code(UInt32)
    /// More frames came that have to be answered than nghttp2 keeps answers for.
    case flood
    /// A head comes in more frames than nghttp2 takes.
    case continuations
    /// A callback of libcurl's refused something: it has no room for more of a head.
    case room
    /// A callback of libcurl's refused something: it has no room for more of a head, or a frame breaks a rule (`CurlLibrary.refusesInvalidFrames`).
    case refusal
  }

  let cause: Cause
  /// Whether the whole connection was given up.
  let isOfConnection: Bool
  /// Whether one stream alone was open then, which is the one at fault.
  var isOfOneStream = false

  /// What is wrong with the response of a stream that was given up.
  var responseFault: ResponseFault {
    switch cause {
    case .continuations where isOfOneStream: .head(.continuations)
    case .room where isOfOneStream: .head(.tooLargeForLibcurl(kibibytes: 128))
    default: .http2(self)
    }
  }

  /// What a message says.
  ///
  /// - Parameter place: who sent it.
  func message(_ place: String) -> String {
    guard isOfConnection else {
      return "\(place) sent an answer that breaks a rule of HTTP/2 (\(name); RFC 9113, section 8.1.1)"
    }
    let what =
      switch cause {
      case .code: "broke a rule of HTTP/2 (\(name); RFC 9113, section 5.4.1)"
      case .flood: "sent more frames that have to be answered than nghttp2 takes"
      case .continuations: "sent \(HeadFault.continuations.description)"
      case .refusal: "sent an HTTP/2 frame that breaks a rule, or a head of more than 128 KiB"
      case .room: "sent \(HeadFault.tooLargeForLibcurl(kibibytes: 128).description)"
      }
    return "\(place) \(what), for which the connection was ended"
  }

  private var name: String {
    guard case .code(let code) = cause else { return "" }
    return Self.names[code] ?? "error \(code)"
  }

  private static let names: [UInt32: String] = [
    1: "PROTOCOL_ERROR", 2: "INTERNAL_ERROR", 3: "FLOW_CONTROL_ERROR", 4: "SETTINGS_TIMEOUT",
    5: "STREAM_CLOSED", 6: "FRAME_SIZE_ERROR", 9: "COMPRESSION_ERROR", 11: "ENHANCE_YOUR_CALM",
  ]
}
