import CCurl
import NetOptCore

// The peer of a transfer, for messages: the server, the proxy, or the server behind the proxy.

extension Transfer {
  /// Whether the connection speaks TLS, with the server or with the proxy.
  var isEncrypted: Bool { exchange.plan.isSecure || proxy.map(ProxyURL.isSecure) == true }

  /// The server's name and port, for messages about a server behind a proxy.
  var server: String { "\(exchange.plan.origin.host):\(exchange.plan.origin.port)" }

  /// The peer that the transfer talks to, or talked to when it failed, as messages name it.
  var peer: String { peer(isInTLS: false) }

  /// The peer that the transfer talks to, as messages name it.
  ///
  /// - Parameter isInTLS: whether a TLS handshake is under way. With a SOCKS proxy, such a handshake is
  ///   always with the server behind the proxy.
  func peer(isInTLS: Bool) -> String {
    guard let proxy else { return endpoint.map { "\($0)" } ?? "the server" }
    let shown = "the proxy \(ProxyURL.shown(proxy))"
    return isPastProxy(isInTLS: isInTLS) ? "\(server) (through \(shown))" : shown
  }

  /// Whether a proxy must connect to the server before the request is sent, by CONNECT or SOCKS.
  var tunnels: Bool { proxy.map { exchange.plan.isSecure || ProxyURL.isSOCKS($0) } ?? false }

  /// Whether the tunnel or the SOCKS connection to the server is open. All data then comes from the server.
  ///
  /// - Parameter isInTLS: whether a TLS handshake is under way.
  func isPastProxy(isInTLS: Bool) -> Bool {
    guard let proxy else { return false }
    if ProxyURL.isSOCKS(proxy) { return readyAt != nil || isInTLS }
    return exchange.plan.isSecure && (readyAt != nil || connectStatus / 100 == 2)
  }

  /// The status of an HTTP proxy's response to CONNECT; 0 when there is no response.
  var connectStatus: Int { easy.info(CURLINFO_HTTP_CONNECTCODE) }

  /// Why the proxy did not connect to the server; `nil` when the transfer failed for another reason.
  func proxyRefusal(_ code: CURLcode) -> ProxyRefusal? {
    guard let proxy, isConnecting else { return nil }
    if code == CURLE_PROXY { return .socks(easy.info(CURLINFO_PROXY_ERROR)) }
    if hasEndlessTunnel {
      return .noAnswer("sent more than \(ProxyRefusal.mostRead / 1024) KiB, which is netopt's limit,")
    }
    // libcurl reports a failed CONNECT with one of these codes, which have other meanings too.
    guard
      code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR || code == CURLE_GOT_NOTHING || code.isTooLarge,
      exchange.plan.isSecure, !ProxyURL.isSOCKS(proxy)
    else { return nil }
    if connectStatus > 0, connectStatus / 100 != 2 { return .status(connectStatus) }
    let errorText = easy.errorText
    if errorText.isAboutLongAnswer || code.isTooLarge {
      return .noAnswer("sent a response that is longer than libcurl accepts")
    }
    if case .head(let fault) = errorText.fault(code, isHeadComplete: false) {
      return .noAnswer("sent \(fault.description)")
    }
    if errorText.wasReset { return .noAnswer("reset the connection") }
    return .noAnswer(
      errorText.isAboutTunnel ? "sent data that is not HTTP" : "closed the connection without an answer")
  }
}
