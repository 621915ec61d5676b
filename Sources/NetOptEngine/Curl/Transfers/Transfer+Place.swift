import CCurl
import NetOptCore

// Who a transfer has to do with, for messages: the server, the proxy, or the server behind the proxy.

extension Transfer {
  /// Whether the connection speaks TLS, with the server or with the proxy.
  var isEncrypted: Bool { exchange.plan.isSecure || proxy.map(ProxyURL.isSecure) == true }

  /// The server, as a message names it where there is no endpoint.
  var server: String { "\(exchange.plan.origin.host):\(exchange.plan.origin.port)" }

  /// Who the transfer talks with, or talked with when it failed.
  var place: String { place(isInTLS: false) }

  /// Who the transfer talks with.
  ///
  /// - Parameter isInTLS: whether a TLS handshake is under way, which behind a SOCKS proxy is one with the server.
  func place(isInTLS: Bool) -> String {
    guard let proxy else { return endpoint.map { "\($0)" } ?? "the server" }
    let shown = "the proxy \(ProxyURL.shown(proxy))"
    return isPastProxy(isInTLS: isInTLS) ? "\(server) (through \(shown))" : shown
  }

  /// Whether a proxy has to connect to the server before a request is sent.
  var tunnels: Bool { proxy.map { exchange.plan.isSecure || ProxyURL.isSOCKS($0) } ?? false }

  /// Whether the transfer goes through a tunnel or a SOCKS proxy that is open: what comes then, comes from the server.
  func isPastProxy(isInTLS: Bool) -> Bool {
    guard let proxy else { return false }
    if ProxyURL.isSOCKS(proxy) { return readyAt != nil || isInTLS }
    return exchange.plan.isSecure && (readyAt != nil || connectStatus / 100 == 2)
  }

  /// The status with which an HTTP proxy answered CONNECT; 0 when it did not.
  var connectStatus: Int { easy.info(CURLINFO_HTTP_CONNECTCODE) }

  /// Why the proxy did not open the way to the server, when that is what the transfer failed of.
  func proxyRefusal(_ code: CURLcode) -> ProxyRefusal? {
    guard let proxy, isConnecting else { return nil }
    if code == CURLE_PROXY { return .socks(easy.info(CURLINFO_PROXY_ERROR)) }
    if hasEndlessTunnel {
      return .noAnswer("sent more than \(ProxyRefusal.mostRead / 1024) KiB, which is netopt's limit,")
    }
    // libcurl says of everything that goes wrong with CONNECT that it could not receive.
    guard
      code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR || code == CURLE_GOT_NOTHING || code.isTooLarge,
      exchange.plan.isSecure, !ProxyURL.isSOCKS(proxy)
    else { return nil }
    if connectStatus > 0, connectStatus / 100 != 2 { return .status(connectStatus) }
    let words = easy.words
    if words.isAboutLongAnswer || code.isTooLarge {
      return .noAnswer("sent an answer that is longer than libcurl takes")
    }
    if case .head(let fault) = words.fault(code, isHeadComplete: false) {
      return .noAnswer("sent \(fault.description)")
    }
    if words.wasReset { return .noAnswer("reset the connection") }
    return .noAnswer(
      words.isAboutTunnel ? "sent something that is not HTTP" : "closed the connection without an answer")
  }
}
