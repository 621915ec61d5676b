import NetOptCore

/// What makes a response one that nobody can rely on.
enum ResponseFault: Hashable, Sendable {
  /// Its head breaks a rule of HTTP.
  case head(ResponseHeadReader.Fault)
  /// Its body is not in the format of its content coding.
  case coding(CodingFailure)
  /// The connection ended inside its head.
  case headCut
  /// Its body ended before its content coding did.
  case codingCut
  /// The HTTP/2 stream or connection ended before the end of its body was announced.
  case streamCut
  /// The end of its body is the end of TLS, which came without close_notify: anybody on the way can have cut it.
  case unannouncedEnd

  /// The error that it ends the call with.
  ///
  /// - Parameters:
  ///   - place: who sent the response.
  ///   - mayBeRepeated: whether the request may be sent again.
  func error(from place: String, _ endpoint: Endpoint?, mayBeRepeated: Bool) -> NetOptError {
    func made(_ code: NetOptError.Code, _ phase: NetOptError.Phase, _ message: String) -> NetOptError {
      let isRetryable = mayBeRepeated && (code == .receiveFailed || code == .protocolViolation)
      return NetOptError(code, phase: phase, message, endpoint: endpoint, isRetryable: isRetryable)
    }
    switch self {
    case .head(.tooLarge):
      let limit = ResponseHeadReader.limit / 1024
      return made(
        .headTooLarge, .receive,
        "the head from \(place) is larger than \(limit) KiB, with interim responses and trailers")
    case .head(let fault):
      return made(.protocolViolation, .receive, "\(place) sent \(fault.description)")
    case .coding(.unknown):
      return made(
        .decodeFailed, .decode,
        "the body from \(place) has a Content-Encoding that is not one of \(ContentDecoder.codings)")
    case .coding(.invalid):
      return made(.decodeFailed, .decode, "the body from \(place) is not what its Content-Encoding says")
    case .coding(.outOfMemory):
      return made(.libraryFailed, .decode, "there is no memory to decode the body from \(place)")
    case .headCut:
      return made(.receiveFailed, .receive, "the connection to \(place) ended inside the response's head")
    case .codingCut:
      return made(
        .receiveFailed, .decode,
        "the body from \(place) ended before its Content-Encoding did: it was cut short")
    case .streamCut:
      return made(
        .receiveFailed, .receive,
        "\(place) ended the HTTP/2 stream before it announced the end of the body: that may have been cut short"
      )
    case .unannouncedEnd:
      return made(
        .receiveFailed, .receive,
        "\(place) ended TLS without close_notify, which was to mark the end of the body: it may have been cut short"
      )
    }
  }
}

extension ResponseHeadReader.Fault {
  /// What was sent, for a message.
  var description: String {
    switch self {
    case .statusLine: "a status line that is not one of HTTP (RFC 9112, section 4)"
    case .interim101: "status 101, although no other protocol was asked for (RFC 9110, section 15.2.2)"
    case .otherVersion: "a response in another version of HTTP than the connection speaks"
    case .fieldLine: "a field line that is not one of HTTP (RFC 9112, section 5)"
    case .contentLength: "a Content-Length that is no length, or two different ones (RFC 9112, section 6.3)"
    case .transferCoding: "a Transfer-Encoding that was not asked for (RFC 9112, section 6.1)"
    case .tooLarge: "a head that is too large"
    }
  }
}
