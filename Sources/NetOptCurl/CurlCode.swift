import CCurl
import Glibc
import NetOptCore

/// What libcurl's codes mean here (libcurl-errors(3)).
enum CurlCode {
  static func underlying(_ code: CURLcode) -> NetOptError.Underlying {
    NetOptError.Underlying(
      .curl, code: Int32(code.rawValue), text: String(cString: curl_easy_strerror(code)))
  }

  /// Why a leg failed before its connection was ready.
  static func legFailure(_ code: CURLcode, of transfer: Transfer, host: String) -> LegFailure {
    let easy = transfer.easy
    let place = transfer.place
    switch code {
    case CURLE_COULDNT_CONNECT:
      return connectFailure(Int32(easy.info(CURLINFO_OS_ERRNO) as Int), to: place)
    case CURLE_OPERATION_TIMEDOUT:
      return transfer.connectedAt != nil
        ? LegFailure(.tlsTimeout, "\(place) accepted the connection and then stayed silent")
        : LegFailure(.connectTimeout, "\(place) did not answer in time")
    case CURLE_PEER_FAILED_VERIFICATION:
      return certificateFailure(of: easy, host: host, place: place)
    case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM, CURLE_SSL_ISSUER_ERROR:
      let reset = Int32(easy.info(CURLINFO_OS_ERRNO) as Int) == ECONNRESET
      return reset
        ? LegFailure(.reset, "\(place) reset the connection during the TLS handshake")
        : LegFailure(.tls, "the TLS handshake with \(place) failed; is TLS spoken on that port?")
    case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING:
      return LegFailure(.reset, "\(place) closed the connection before it was ready")
    case CURLE_SSL_CACERT_BADFILE:
      return LegFailure(
        .other, "the authorities to trust could not be read; check the file that tls.caFile names")
    case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY:
      return LegFailure(.proxy, "the proxy \(place) could not be used")
    default:
      return LegFailure(.other, "\(place): \(String(cString: curl_easy_strerror(code)))")
    }
  }

  private static func connectFailure(_ errno: Int32, to place: String) -> LegFailure {
    switch errno {
    case ECONNREFUSED: LegFailure(.refused, "\(place) refused the connection")
    case ETIMEDOUT: LegFailure(.connectTimeout, "\(place) did not answer in time")
    case ECONNRESET: LegFailure(.reset, "\(place) reset the connection")
    case ENETUNREACH, EHOSTUNREACH, EAFNOSUPPORT, EADDRNOTAVAIL, ENETDOWN:
      LegFailure(.unreachable, "there is no way from here to \(place): \(String(cString: strerror(errno)))")
    default:
      LegFailure(.other, "connecting to \(place) failed: \(String(cString: strerror(errno)))")
    }
  }

  private static func certificateFailure(of easy: EasyHandle, host: String, place: String) -> LegFailure {
    // libcurl looks at the name after the chain has been verified, and has told about the certificate by then.
    let names = CertificateNames.presented(by: easy)
    if !names.isEmpty {
      return LegFailure(
        .certificateName(presented: names),
        "the certificate of \(place) is for \(names.joined(separator: ", ")), not for \(host)")
    }
    let result: Int = easy.info(CURLINFO_SSL_VERIFYRESULT)
    if result == 9 || result == 10 {  // X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
      return LegFailure(
        .certificateExpired, "the certificate of \(place) has expired or is not valid yet; check both clocks")
    }
    return LegFailure(
      .certificateUntrusted,
      "the certificate of \(place) is not signed by a trusted authority; name its authority's file if it is yours"
    )
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

  /// Whether a request may have ended this way that was not processed.
  static func isLoss(_ code: CURLcode) -> Bool {
    connectionLost.contains(code) || notReplaced.contains(code) || code == CURLE_HTTP2
  }

  /// Whether it is what a new connection fails with.
  static func isOfNewConnection(_ code: CURLcode) -> Bool { notReplaced.contains(code) }

  /// What is to be blamed on the endpoint when an exchange ends after its request was sent and before an answer began.
  /// `nil` for a stream that was reset: the connection is well, and who resets it speaks for a server behind it.
  static func failureAfterSending(_ code: CURLcode, of transfer: Transfer) -> LegFailure? {
    if notReplaced.contains(code) {
      return legFailure(code, of: transfer, host: transfer.exchange.plan.origin.host)
    }
    guard connectionLost.contains(code), code != CURLE_HTTP2_STREAM else { return nil }
    return LegFailure(.reset, "\(transfer.place) closed the connection before an answer began")
  }

  /// What ended an exchange after its request was sent, or while the response was coming.
  ///
  /// - Parameter loss: how the request was lost, if it has no answer.
  static func error(
    _ code: CURLcode, headReceived: Bool, loss: RequestLoss, endpoint: Endpoint?, mayBeRepeated: Bool
  ) -> NetOptError {
    let place = endpoint.map { "\($0)" } ?? "the proxy"
    let carrier = code == CURLE_HTTP2_STREAM ? "stream" : "connection"
    let (kind, phase, message): (NetOptError.Code, NetOptError.Phase, String) =
      switch code {
      case CURLE_BAD_CONTENT_ENCODING:
        (.decodeFailed, .decode, "the body from \(place) is not what its Content-Encoding says")
      // libcurl may say that HTTP/2 failed when nothing is left to do on a connection that the server ends in order.
      case CURLE_HTTP2 where !headReceived && (loss.fate.isSafe || loss.wasLeaving):
        (.sendFailed, .send, loss.description(at: place, usual: ""))
      // A bad argument is what libcurl calls a field line that is not one.
      case CURLE_HTTP2, CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP3,
        CURLE_BAD_FUNCTION_ARGUMENT:
        (.protocolViolation, .receive, "\(place) broke the rules of HTTP")
      case CURLE_SEND_FAIL_REWIND:
        (
          .sendFailed, .send,
          "the connection to \(place) failed and the body, a stream, cannot be sent a second time"
        )
      case _ where headReceived && connectionLost.contains(code):
        (.receiveFailed, .receive, "the \(carrier) to \(place) ended before the body did")
      case _ where connectionLost.contains(code):
        (
          .sendFailed, .send,
          loss.description(at: place, usual: "the \(carrier) to \(place) ended before an answer began")
        )
      case _ where !headReceived && notReplaced.contains(code):
        (
          .sendFailed, .send,
          loss.description(
            at: place,
            usual:
              "the connection to \(place) died before an answer began, and another one could not be opened")
        )
      // Without memory Swift would have ended. libcurl says this of a line that is longer than it takes.
      case CURLE_OUT_OF_MEMORY where !headReceived:
        (.headTooLarge, .receive, "a line of the head from \(place) is longer than libcurl takes (100 KiB)")
      default:
        (.libraryFailed, .receive, "the exchange with \(place) failed")
      }
    let isRetryable =
      mayBeRepeated && kind != .decodeFailed && kind != .libraryFailed && kind != .headTooLarge
    return NetOptError(
      kind, phase: phase, message, endpoint: endpoint, underlying: underlying(code), isRetryable: isRetryable)
  }

  /// What a call ends with when its last leg failed before it was ready.
  static func error(_ failure: LegFailure, endpoint: Endpoint?) -> NetOptError {
    let (code, phase): (NetOptError.Code, NetOptError.Phase) =
      switch failure.kind {
      case .refused, .reset, .unreachable, .proxy: (.connectFailed, .connect)
      case .connectTimeout: (.timeout, .connect)
      case .tlsTimeout: (.timeout, .tls)
      case .tls: (.tlsFailed, .tls)
      case .certificateName: (.certificateName, .tls)
      case .certificateUntrusted: (.certificateUntrusted, .tls)
      case .certificateExpired: (.certificateExpired, .tls)
      case .resolve: (.resolverFailed, .resolve)
      case .nameNotFound: (.nameNotFound, .resolve)
      case .unhealthy, .other: (.connectFailed, .connect)
      }
    let certificate = [.certificateName, .certificateUntrusted, .certificateExpired].contains(code)
    return NetOptError(code, phase: phase, failure.message, endpoint: endpoint, isRetryable: !certificate)
  }
}
