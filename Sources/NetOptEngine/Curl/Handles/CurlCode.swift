import CCurl
import Glibc
import NetOptCore

/// Translates libcurl's error codes (libcurl-errors(3)).
enum CurlCode {
  /// Returns libcurl's code and text, for `NetOptError.underlying`.
  ///
  /// - Parameter errorText: libcurl's text about the failure, which says more than the code. Without it, the
  ///   text is libcurl's description of the code.
  static func underlying(_ code: CURLcode, _ errorText: CurlErrorText? = nil) -> NetOptError.Underlying {
    NetOptError.Underlying(
      .curl, code: Int32(code.rawValue), text: errorText?.shown ?? String(cString: curl_easy_strerror(code)))
  }

  /// The codes for a lost connection or stream. An HTTP/2 stream that ends early counts as a lost connection
  /// and breaks no rule: a proxy may reset the stream when its own server is gone (RFC 9113, section 5.4.2).
  private static let connectionLost = [
    CURLE_PARTIAL_FILE, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2_STREAM,
  ]

  /// The codes with which a transfer ends when libcurl cannot open a connection. When a transfer ends with
  /// such a code after its request was sent, its connection died before a response began, and libcurl could
  /// not open another connection to send the request again.
  private static let replacementFailed = [
    CURLE_COULDNT_CONNECT, CURLE_OPERATION_TIMEDOUT, CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION,
  ]

  /// Returns the code for the cause of a failure: CURLE_RECV_ERROR instead of CURLE_HTTP2 when reading from
  /// the socket or writing to it failed. libcurl may report an HTTP/2 error in this case.
  static func cause(of code: CURLcode, _ errorText: @autoclosure () -> CurlErrorText) -> CURLcode {
    code == CURLE_HTTP2 && errorText().isAboutSocket ? CURLE_RECV_ERROR : code
  }

  /// Whether a server may have left the request unprocessed if the transfer ends with this code. This is
  /// possible, not certain: `SentRequest.fate` says whether netopt knows that no server processed the
  /// request.
  static func mayLeaveUnprocessed(_ code: CURLcode) -> Bool {
    connectionLost.contains(code) || replacementFailed.contains(code) || code == CURLE_HTTP2
  }

  /// Whether libcurl reports this code when it cannot open a connection.
  static func isReplacementFailure(_ code: CURLcode) -> Bool { replacementFailed.contains(code) }

  /// Returns the failure that counts against the endpoint when a transfer ends after its request was sent and
  /// before a response began. `nil` for codes that do not mean a lost connection, and for a reset stream: the
  /// connection works, and the reset may come from a server behind the endpoint.
  static func failureAfterSending(_ code: CURLcode, of transfer: Transfer) -> LegFailure? {
    if replacementFailed.contains(code) { return legFailure(code, of: transfer) }
    guard connectionLost.contains(code), code != CURLE_HTTP2_STREAM else { return nil }
    return LegFailure(.reset, "\(transfer.peer) closed the connection before the response began")
  }

  /// Returns the error of an exchange whose transfer ended after its request was sent, for a reason other
  /// than a faulty response (`ResponseFault`).
  static func error(_ code: CURLcode, of transfer: Transfer) -> NetOptError {
    let peer = transfer.peer
    let errorText = transfer.easy.errorText
    if let refusal = transfer.proxyRefusal(code), let proxy = transfer.proxy {
      // The connection had died, and libcurl tried to open another one through the proxy.
      return NetOptError(
        .proxyFailed, phase: .connect,
        "the connection to \(peer) ended, and \(refusal.failure(of: proxy, to: transfer.server).message)",
        endpoint: transfer.endpoint, underlying: underlying(code, errorText),
        isRetryable: transfer.exchange.request.mayBeRepeated)
    }
    let (kind, phase, message) = description(of: code, transfer)
    let isRetryable =
      transfer.exchange.request.mayBeRepeated
      && ![.decodeFailed, .libraryFailed, .tlsFailed].contains(kind)
    return NetOptError(
      kind, phase: phase, message, endpoint: transfer.endpoint, underlying: underlying(code, errorText),
      isRetryable: isRetryable)
  }

  /// The message about a connection that died before the response began, and that could not be replaced.
  static func notReplaced(_ peer: String, _ failure: LegFailure) -> String {
    "the connection to \(peer) died before the response began, and netopt could not open another one: "
      + failure.message
  }

  /// Returns the code, phase and message of the error that a code of libcurl means.
  private static func description(
    of code: CURLcode, _ transfer: Transfer
  ) -> (NetOptError.Code, NetOptError.Phase, String) {
    let peer = transfer.peer
    let errorText = transfer.easy.errorText
    let loss = transfer.loss
    let isHeadComplete = transfer.isHeadComplete
    let carrier = code == CURLE_HTTP2_STREAM ? "stream" : "connection"
    let lost = "the \(carrier) to \(peer) \(errorText.ending)"
    if !isHeadComplete, let refusal = clientRefusal(by: peer, of: transfer) {
      return (.tlsFailed, .tls, refusal)
    }
    switch code {
    case CURLE_BAD_CONTENT_ENCODING:
      return (.decodeFailed, .decode, "the body from \(peer) does not match its Content-Encoding")
    // libcurl may report an HTTP/2 error when the server ends a connection properly (GOAWAY) and no stream is
    // left on it.
    case CURLE_HTTP2 where !isHeadComplete && (loss.fate.isUnprocessed || loss.wasLeaving):
      return (.sendFailed, .send, loss.description(at: peer, usual: ""))
    case CURLE_HTTP2 where loss.wasLeaving:
      return (.receiveFailed, .receive, "\(peer) ended the connection (GOAWAY) before the end of the body")
    case CURLE_HTTP2, CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP3,
      CURLE_BAD_FUNCTION_ARGUMENT:
      return (.protocolViolation, .receive, "\(peer) broke the rules of HTTP")
    case CURLE_SEND_FAIL_REWIND:
      return (
        .sendFailed, .send,
        loss.description(
          at: peer,
          usual:
            "the connection to \(peer) failed, and netopt cannot send the body, a stream, a second time")
      )
    case _ where isHeadComplete && connectionLost.contains(code):
      return (.receiveFailed, .receive, "\(lost) \(transfer.missingPart)")
    case _ where connectionLost.contains(code):
      return (
        .sendFailed, .send,
        loss.description(
          at: peer,
          usual:
            "\(lost) \(transfer.hasAnswerBegun ? "before the end of the response" : "before the response began")"
        )
      )
    case _ where !isHeadComplete && replacementFailed.contains(code):
      return (
        .sendFailed, .send,
        loss.description(
          at: peer,
          usual: notReplaced(peer, legFailure(code, of: transfer)))
      )
    default:
      return (
        .libraryFailed, .receive,
        "libcurl ended the exchange with \(peer): \(underlying(code, errorText).text)"
      )
    }
  }
}
