import NetOptCore

/// The reason why a response is unusable.
enum ResponseFault: Hashable, Sendable {
  /// The head breaks a rule of HTTP.
  case head(HeadFault)
  /// The head announces chunks, but the body does not consist of valid chunks.
  case chunk(ChunkFault)
  /// The server broke a rule of HTTP/2, or nghttp2 refused what the server sent.
  case http2(HTTP2Fault)
  /// The body could not be decoded according to its Content-Encoding.
  case coding(CodingFailure)
  /// The connection ended inside the head.
  case headCut
  /// The body ended, but the data in its content coding is not complete.
  case codingCut
  /// An HTTP/2 response ended before the server announced the end of the body (END_STREAM), or before libcurl
  /// delivered the whole body.
  case streamCut
  /// libcurl took an HTTP/1.1 body for complete, but did not deliver all bytes of the body.
  case partLost
  /// The server rejected the Expect field that the caller set (417). libcurl drops such a response and wants
  /// to send the request again, which netopt prevents.
  case expectationRefused
  /// libcurl was about to send a part of the request's body twice (`SentBody`). A response is for another body
  /// than the caller's.
  case bodyRepeated
  /// The body ends with its TLS connection, and the connection ended without close_notify. An attacker
  /// between server and client may have cut the body short.
  case unannouncedEnd

  /// Returns the error with which the call ends.
  ///
  /// - Parameters:
  ///   - peer: the sender of the response, as messages name it.
  ///   - endpoint: the endpoint of the connection; `nil` for a proxy.
  ///   - mayBeRepeated: whether the request may be sent again.
  func error(from peer: String, _ endpoint: IPEndpoint?, mayBeRepeated: Bool) -> NetOptError {
    func made(_ code: NetOptError.Code, _ phase: NetOptError.Phase, _ message: String) -> NetOptError {
      let isRetryable =
        mayBeRepeated && (code == .receiveFailed || code == .protocolViolation || code == .sendFailed)
      return NetOptError(code, phase: phase, message, endpoint: endpoint, isRetryable: isRetryable)
    }
    switch self {
    case .head(let fault):
      return made(
        fault.exceedsSizeLimit ? .headTooLarge : .protocolViolation, .receive,
        "\(peer) sent \(fault.description)")
    case .chunk(let fault):
      return made(.protocolViolation, .receive, "\(peer) sent \(fault.rawValue)")
    case .http2(let fault):
      return made(.protocolViolation, .receive, fault.message(peer))
    case .coding(.unknown):
      return made(
        .decodeFailed, .decode,
        "the body from \(peer) has a Content-Encoding that is not one of \(ContentDecoder.codings)")
    case .coding(.tooMany):
      return made(
        .decodeFailed, .decode,
        "the body from \(peer) has more than \(ContentDecoder.mostCodings) content codings, which is netopt's limit"
      )
    case .coding(.tooSlow):
      return made(
        .decodeFailed, .decode,
        "decoding the body from \(peer) (Content-Encoding) takes far longer than its size explains")
    case .coding(.invalid):
      return made(.decodeFailed, .decode, "the body from \(peer) does not match its Content-Encoding")
    case .coding(.outOfMemory):
      return made(.libraryFailed, .decode, "not enough memory to decode the body from \(peer)")
    case .headCut:
      return made(.receiveFailed, .receive, "the connection to \(peer) ended inside the response's head")
    case .codingCut:
      return made(
        .receiveFailed, .decode,
        "the body from \(peer) ended before its encoded data was complete (Content-Encoding)")
    case .streamCut:
      return made(
        .receiveFailed, .receive,
        "\(peer) ended the HTTP/2 stream before it announced the end of the body: the body may be incomplete"
      )
    case .partLost:
      return made(
        .receiveFailed, .receive,
        "libcurl \(CurlLibrary.release) lost a part of the body from \(peer)"
          + (CurlLibrary.losesPausedBodies
            ? ", as this release does when the program reads slowly; use another release" : "")
      )
    case .expectationRefused:
      return made(
        .unsupported, .send,
        "\(peer) rejected the request's Expect field (417); remove the field")
    case .bodyRepeated:
      return made(
        .sendFailed, .send,
        "libcurl \(CurlLibrary.release) was about to send a part of the body twice to \(peer), so netopt ended the request; whether it took effect is not known; libcurl 8.1.0 and later do not have this fault"
      )
    case .unannouncedEnd:
      return made(
        .receiveFailed, .receive,
        "\(peer) ended TLS without close_notify, which marks the end of this body: the body may be incomplete"
      )
    }
  }
}

/// A fault in the chunks of a body. The raw value describes the faulty part, for a message that begins with
/// "the server sent".
enum ChunkFault: String, Sendable {
  /// The size of a chunk is not a valid number.
  case size = "a chunk whose size is not a hexadecimal number below 2^63 (RFC 9112, section 7.1)"
  /// The size of a chunk has more digits than libcurl accepts.
  case longSize =
    "a chunk whose size has more than 16 digits, which is libcurl's limit (RFC 9112, section 7.1)"
  /// No line end follows the data of a chunk.
  case end = "a chunk that does not end where its size says (RFC 9112, section 7.1)"
  /// The line with a size is longer than `ChunkReader.longestLine`.
  case longLine = "a chunk whose extensions have more than 4 KiB (RFC 9112, section 7.1.1)"
  /// The body has far more bytes of sizes, extensions and line ends than bytes of data.
  case framing = "more than 64 KiB of chunk extensions for hardly any data (RFC 9112, section 7.1.1)"

  /// Whether netopt must end the connection to end the transfer. netopt can fail a transfer only when libcurl
  /// delivers data. A server can send extensions without data, and libcurl would read them without end.
  var endsConnection: Bool { self == .longLine || self == .framing }
}
