import CCurl
import Glibc
import NetOptCore

/// What libcurl's codes mean here (libcurl-errors(3)).
enum CurlCode {
  /// - Parameter words: what libcurl says besides, which is more than the code has.
  static func underlying(_ code: CURLcode, _ words: FailureWords? = nil) -> NetOptError.Underlying {
    NetOptError.Underlying(
      .curl, code: Int32(code.rawValue), text: words?.shown ?? String(cString: curl_easy_strerror(code)))
  }

  /// A stream that ends early is to HTTP/2 what a connection that does is to HTTP/1.1: a proxy resets it when its own
  /// server has gone (RFC 9113, section 5.4.2). That breaks no rule.
  private static let connectionLost = [
    CURLE_PARTIAL_FILE, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2_STREAM,
  ]

  /// What a new connection fails with, when libcurl opens one because a pooled connection died without an answer.
  private static let notReplaced = [
    CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT, CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION,
  ]

  /// What a transfer ended with. libcurl may say that HTTP/2 failed when it could not read from the connection, or write to it.
  static func cause(of code: CURLcode, _ words: @autoclosure () -> FailureWords) -> CURLcode {
    code == CURLE_HTTP2 && words().areAboutSocket ? CURLE_RECV_ERROR : code
  }

  /// Whether a request may have ended this way that was not processed.
  static func isLoss(_ code: CURLcode) -> Bool {
    connectionLost.contains(code) || notReplaced.contains(code) || code == CURLE_HTTP2
  }

  /// Whether it is what a new connection fails with.
  static func isOfNewConnection(_ code: CURLcode) -> Bool { notReplaced.contains(code) }

  /// What is to be blamed on the endpoint when an exchange ends after its request was sent and before an answer began.
  /// `nil` for a stream that was reset: the connection is well, and who resets it speaks for a server behind it.
  static func failureAfterSending(_ code: CURLcode, of transfer: Transfer) -> LegFailure? {
    if notReplaced.contains(code) { return legFailure(code, of: transfer) }
    guard connectionLost.contains(code), code != CURLE_HTTP2_STREAM else { return nil }
    return LegFailure(.reset, "\(transfer.place) closed the connection before an answer began")
  }

  /// What ended an exchange after its request was sent, or while the response was coming, when the response itself is not at fault.
  static func error(_ code: CURLcode, of transfer: Transfer) -> NetOptError {
    let place = transfer.place
    let words = transfer.easy.words
    if let refusal = transfer.proxyRefusal(code), let proxy = transfer.proxy {
      // libcurl was about to send it again.
      return NetOptError(
        .proxyFailed, phase: .connect,
        "the connection to \(place) ended, and \(refusal.failure(of: proxy, to: transfer.server).message)",
        endpoint: transfer.endpoint, underlying: underlying(code, words),
        isRetryable: transfer.exchange.request.mayBeRepeated)
    }
    let (kind, phase, message) = description(of: code, transfer)
    let isRetryable =
      transfer.exchange.request.mayBeRepeated && kind != .decodeFailed && kind != .libraryFailed
    return NetOptError(
      kind, phase: phase, message, endpoint: transfer.endpoint, underlying: underlying(code, words),
      isRetryable: isRetryable)
  }

  /// Which kind of error it is, of which phase, and what to say of it.
  private static func description(
    of code: CURLcode, _ transfer: Transfer
  ) -> (NetOptError.Code, NetOptError.Phase, String) {
    let place = transfer.place
    let words = transfer.easy.words
    let loss = transfer.loss
    let isAnswered = transfer.isHeadComplete
    let carrier = code == CURLE_HTTP2_STREAM ? "stream" : "connection"
    let lost = "the \(carrier) to \(place) \(words.ending)"
    switch code {
    case CURLE_BAD_CONTENT_ENCODING:
      return (.decodeFailed, .decode, "the body from \(place) is not what its Content-Encoding says")
    // libcurl may say that HTTP/2 failed when nothing is left to do on a connection that the server ends in order.
    case CURLE_HTTP2 where !isAnswered && (loss.fate.isSafe || loss.wasLeaving):
      return (.sendFailed, .send, loss.description(at: place, usual: ""))
    case CURLE_HTTP2 where loss.wasLeaving:
      return (.receiveFailed, .receive, "\(place) ended the connection (GOAWAY) before the end of the body")
    case CURLE_HTTP2, CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP3,
      CURLE_BAD_FUNCTION_ARGUMENT:
      return (.protocolViolation, .receive, "\(place) broke the rules of HTTP")
    case CURLE_SEND_FAIL_REWIND:
      return (
        .sendFailed, .send,
        loss.description(
          at: place,
          usual: "the connection to \(place) failed and the body, a stream, cannot be sent a second time")
      )
    case _ where isAnswered && connectionLost.contains(code):
      return (.receiveFailed, .receive, "\(lost) \(transfer.whatIsMissing)")
    case _ where connectionLost.contains(code):
      return (
        .sendFailed, .send,
        loss.description(
          at: place,
          usual:
            "\(lost) \(transfer.hasAnswerBegun ? "before the end of the answer" : "before an answer began")"
        )
      )
    case _ where !isAnswered && notReplaced.contains(code):
      return (
        .sendFailed, .send,
        loss.description(
          at: place,
          usual:
            "the connection to \(place) died before an answer began, and another one could not be opened: "
            + legFailure(code, of: transfer).message)
      )
    default:
      return (
        .libraryFailed, .receive,
        "libcurl ended the exchange with \(place): \(underlying(code, words).text)"
      )
    }
  }
}
