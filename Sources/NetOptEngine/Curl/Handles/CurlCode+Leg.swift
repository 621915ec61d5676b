import CCurl
import Glibc
import NetOptCore

// Maps libcurl's error codes to the reasons why a leg failed before its connection was ready.

extension CurlCode {
  /// The codes for a failure of TLS.
  private static let tlsCodes = [
    CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM, CURLE_SSL_ISSUER_ERROR,
    CURLE_PEER_FAILED_VERIFICATION,
  ]

  /// Returns the failure of the leg whose transfer ended with this code.
  static func legFailure(_ code: CURLcode, of transfer: Transfer) -> LegFailure {
    let easy = transfer.easy
    let peer = transfer.peer(isInTLS: tlsCodes.contains(code))
    if let refusal = transfer.proxyRefusal(code), let proxy = transfer.proxy {
      return refusal.failure(of: proxy, to: transfer.server)
    }
    switch code {
    case CURLE_COULDNT_CONNECT:
      return connectFailure(transfer.socketError ?? Int32(easy.info(CURLINFO_OS_ERRNO) as Int), to: peer)
    case CURLE_OPERATION_TIMEDOUT: return timeout(of: transfer, peer)
    case CURLE_PEER_FAILED_VERIFICATION:
      return transfer.certificate?.authoritiesFailure ?? certificateFailure(of: transfer, peer)
    case CURLE_SSL_CERTPROBLEM where transfer.bundles.tls.settings.identity != nil:
      return LegFailure(
        .tls, "the client certificate cannot be used for \(peer): OpenSSL refuses it (tls.clientCertificate)")
    // Only a libcurl without OpenSSL reads the authorities itself.
    case CURLE_SSL_CACERT_BADFILE: return transfer.bundles.tls.authorities.failure
    case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM, CURLE_SSL_ISSUER_ERROR:
      return tlsFailure(code, of: transfer, peer)
    case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING:
      return LegFailure(.reset, "\(peer) closed the connection before it was ready")
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
      return LegFailure(
        .certificatePin,
        "the key of the certificate of \(peer) is none of the pinned keys of \(transfer.exchange.plan.origin.host); if the server has a new key, add its pin (tls.pins, --pinnedpubkey, or pins in the IP list)"
      )
    case CURLE_COULDNT_RESOLVE_PROXY:
      return LegFailure(.proxy, "no address is known for \(peer); check the name in its URL, and DNS")
    default:
      return LegFailure(.other, "\(peer): \(String(cString: curl_easy_strerror(code)))")
    }
  }

  /// Returns the failure of a leg that could not connect.
  ///
  /// - Parameter errno: the error of connect(2) or socket(2); 0 if it is unknown.
  private static func connectFailure(_ errno: Int32, to peer: String) -> LegFailure {
    switch errno {
    case ECONNREFUSED: LegFailure(.refused, "\(peer) refused the connection")
    case ETIMEDOUT: LegFailure(.connectTimeout, "\(peer) did not answer in time")
    case ECONNRESET: LegFailure(.reset, "\(peer) reset the connection")
    case ENETUNREACH, EHOSTUNREACH, EAFNOSUPPORT, EADDRNOTAVAIL, ENETDOWN:
      LegFailure(
        .unreachable, "there is no route from this machine to \(peer): \(String(cString: strerror(errno)))")
    case EMFILE, ENFILE:
      LegFailure(
        .other,
        "no socket could be opened to \(peer): \(String(cString: strerror(errno))); raise the limit of open files (ulimit -n)"
      )
    case 0: LegFailure(.other, "connecting to \(peer) failed, and libcurl gives no reason")
    default: LegFailure(.other, "connecting to \(peer) failed: \(String(cString: strerror(errno)))")
    }
  }

  /// Returns the failure of a leg whose connection was not ready in time.
  private static func timeout(of transfer: Transfer, _ peer: String) -> LegFailure {
    guard transfer.connectedAt != nil else {
      // A transfer that opened no socket waits for a connection that other transfers are opening.
      let what = transfer.descriptor == nil ? "did not accept the connection" : "did not answer"
      return LegFailure(.connectTimeout, "\(peer) \(what) in time")
    }
    guard transfer.proxy != nil, transfer.tunnels, !transfer.isPastProxy(isInTLS: false) else {
      return LegFailure(.tlsTimeout, "\(peer) accepted the connection and then sent nothing")
    }
    return LegFailure(
      .proxy, "\(peer) accepted the connection and did not connect to \(transfer.server) in time")
  }

  /// Returns the failure of a leg whose TLS handshake failed for another reason than the peer's certificate.
  private static func tlsFailure(_ code: CURLcode, of transfer: Transfer, _ peer: String) -> LegFailure {
    let easy = transfer.easy
    let errorText = easy.errorText
    if let refusal = clientRefusal(by: peer, of: transfer) { return LegFailure(.tls, refusal) }
    if errorText.wasReset || Int32(easy.info(CURLINFO_OS_ERRNO) as Int) == ECONNRESET {
      return LegFailure(.reset, "\(peer) reset the connection during the TLS handshake")
    }
    if errorText.wasClosedInHandshake {
      return LegFailure(.tls, "\(peer) closed the connection during the TLS handshake")
    }
    guard let reason = errorText.tlsReason else {
      let reason = String(cString: curl_easy_strerror(code))
      return LegFailure(.tls, "the TLS handshake with \(peer) failed: \(reason)")
    }
    // The reason has the form `tlsv1 alert internal error`.
    if let alert = reason.utf8.firstRange(ofBytes: " alert "),
      reason.hasPrefix("tls") || reason.hasPrefix("ssl")
    {
      let name = reason[alert.upperBound...]
      let advice =
        switch name {
        case "protocol version":
          "; it speaks no version of TLS that the settings allow (\(transfer.bundles.tls.settings.versions))"
        case "handshake failure", "insufficient security":
          "; it may have no cipher suite in common with the settings, or require a client certificate (tls)"
        default: ""
        }
      return LegFailure(.tls, "\(peer) refused the TLS handshake with the alert \"\(name)\"\(advice)")
    }
    if reason == "unsupported protocol" || reason == "no protocols available" {
      return LegFailure(
        .tls,
        "\(peer) speaks no version of TLS that the settings allow (\(transfer.bundles.tls.settings.versions))"
      )
    }
    // OpenSSL's text for an answer that is not a TLS record.
    if reason == "wrong version number" {
      return LegFailure(
        .tls,
        "\(peer) answered the TLS handshake with data that is not TLS; check that this port serves TLS")
    }
    return LegFailure(.tls, "the TLS handshake with \(peer) failed: \(reason)")
  }

  /// Returns the message when a server refuses the client's certificate, or its lack; `nil` for any other
  /// failure. In TLS 1.3 the server refuses after the handshake.
  static func clientRefusal(by peer: String, of transfer: Transfer) -> String? {
    guard let alert = transfer.easy.errorText.clientCertificateAlert ?? transfer.connection?.certificateAlert
    else { return nil }
    return transfer.bundles.tls.settings.identity == nil
      ? "\(peer) requires a client certificate (alert \"\(alert)\"); set tls.clientCertificate (--cert)"
      : "\(peer) refused the client certificate with the alert \"\(alert)\"; check which authorities it trusts, and the dates of the certificate (tls.clientCertificate, --cert)"
  }

  /// The results of X509_verify_cert(3) (x509_vfy.h) for a chain that does not lead to a trusted authority:
  /// X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
  /// X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
  /// X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE.
  private static let unknownIssuer = [2, 18, 19, 20, 21]

  /// The results of X509_verify_cert(3) when the chain is right: X509_V_OK, libcurl's value before the
  /// verification, X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
  private static let noChainFault = [0, 1, 62, 64]

  /// Returns the failure of a leg that refused the certificate of the server or the proxy.
  private static func certificateFailure(of transfer: Transfer, _ peer: String) -> LegFailure {
    let easy = transfer.easy
    let errorText = easy.errorText
    let isOfProxy = transfer.proxy != nil && !transfer.isPastProxy(isInTLS: true)
    let host =
      isOfProxy ? transfer.proxy.map { ProxyURL.host(of: $0) } ?? "" : transfer.exchange.plan.origin.host
    let result: Int = easy.info(isOfProxy ? CURLINFO_PROXY_SSL_VERIFYRESULT : CURLINFO_SSL_VERIFYRESULT)
    // libcurl checks the name after it has verified the chain, and has reported the certificate by then. So a
    // reported certificate means that the name is wrong, unless the result says that the chain is.
    let names = CertificateNames.presented(to: transfer)
    if Self.noChainFault.contains(result), !names.isEmpty || errorText.isAboutName {
      return LegFailure(
        .certificateName(presented: names),
        "the certificate of \(peer) is for \(names.isEmpty ? "no name" : names.joined(separator: ", ")), not for \(host)"
      )
    }
    switch result {
    case 9:  // X509_V_ERR_CERT_NOT_YET_VALID
      return LegFailure(
        .certificateExpired, "the certificate of \(peer) is not yet valid; check this machine's clock")
    case 10:  // X509_V_ERR_CERT_HAS_EXPIRED
      return LegFailure(
        .certificateExpired,
        "a certificate of \(peer) has expired; renew it, or check this machine's clock")
    case 3, 12:  // X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_CRL_HAS_EXPIRED
      return LegFailure(
        .certificateUntrusted,
        "whether the certificate of \(peer) is revoked is not known: \(result == 3 ? "the list of one of its issuers is missing in" : "a list has expired in") the file of revocation lists (tls.revocationFile, --crlfile)"
      )
    case 23:  // X509_V_ERR_CERT_REVOKED
      return LegFailure(
        .certificateUntrusted,
        "a certificate of \(peer) is revoked, as the file of revocation lists says (tls.revocationFile, --crlfile)"
      )
    case 26:  // X509_V_ERR_INVALID_PURPOSE
      return LegFailure(
        .certificateUntrusted,
        "the certificate of \(peer) is not for servers (extended key usage); the server needs another one")
    case let code where errorText.certificateReason == nil || unknownIssuer.contains(code):
      let reason = errorText.certificateReason.map { " (\($0))" } ?? ""
      return LegFailure(
        .certificateUntrusted,
        "the certificate of \(peer) is not signed by a trusted authority\(reason); if you trust the authority, name its file with tls.caFile (--cacert), and make the server send the certificates between its own and the authority's"
      )
    default:
      return LegFailure(
        .certificateUntrusted,
        "the certificate of \(peer) is not trusted: \(errorText.certificateReason ?? "")")
    }
  }
}
