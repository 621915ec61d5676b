import CCurl
import NetOptCore

/// The reason why a proxy did not connect to a server.
enum ProxyRefusal: Hashable, Sendable {
  /// The proxy answered CONNECT with this status (RFC 9110, section 9.3.6).
  case status(Int)
  /// The proxy gave no usable response to CONNECT. The text says what it did instead: a verb phrase whose
  /// subject is the proxy.
  case noAnswer(String)
  /// The SOCKS handshake failed with this code of libcurl (`CURLproxycode`).
  case socks(Int)

  /// The maximum size of a response to CONNECT, in bytes.
  static let mostRead = 64 * 1024

  /// Returns the failure of the leg through the proxy.
  ///
  /// - Parameters:
  ///   - url: the proxy's URL.
  ///   - server: the server that the proxy was asked to connect to.
  func failure(of url: String, to server: String) -> LegFailure {
    let proxy = "the proxy \(ProxyURL.shown(url))"
    let signsOn = ProxyURL.hasCredentials(url)
    switch self {
    case .status(407) where signsOn:
      return LegFailure(
        .proxyRefused, "\(proxy) rejects the user name and password in its URL (407); check them")
    case .status(407):
      return LegFailure(
        .proxyRefused,
        "\(proxy) requires a user name and a password (407); add them to its URL, as in http://USER:PASSWORD@HOST:PORT"
      )
    case .status(let status) where status >= 500:
      return LegFailure(
        .proxy,
        "\(proxy) could not connect to \(server) (\(status)); check that the proxy resolves and reaches the server"
      )
    case .status(let status) where status < 400:
      return LegFailure(
        .proxyRefused,
        "\(proxy) answered with \(status) when it was asked to connect to \(server), and opened no tunnel; check that its URL is the URL of a proxy"
      )
    case .status(let status):
      return LegFailure(
        .proxyRefused,
        "\(proxy) refused to connect to \(server) (\(status)); allow it there, or bypass the proxy (no_proxy)"
      )
    case .noAnswer(let what):
      return LegFailure(.proxy, "\(proxy) \(what) when it was asked to connect to \(server)")
    case .socks(let code): return Self.failure(code, proxy, server, signsOn)
    }
  }

  /// Returns the failure of the leg for a failed SOCKS handshake.
  ///
  /// - Parameters:
  ///   - code: libcurl's reason for the failure (`CURLproxycode`).
  ///   - proxy: the proxy, as messages name it.
  ///   - signsOn: whether the proxy's URL has a user name or a password.
  private static func failure(
    _ code: Int, _ proxy: String, _ server: String, _ signsOn: Bool
  ) -> LegFailure {
    func could(not what: String) -> LegFailure {
      LegFailure(.proxy, "\(proxy) could not connect to \(server): \(what)")
    }
    switch code {
    case CURLPX_NO_AUTH.number, CURLPX_USER_REJECTED.number:
      return LegFailure(
        .proxyRefused,
        signsOn
          ? "\(proxy) rejects the user name and password in its URL; check them"
          : "\(proxy) requires a user name and a password; add them to its URL, as in socks5h://USER:PASSWORD@HOST:PORT"
      )
    case CURLPX_REPLY_NOT_ALLOWED.number:
      return LegFailure(
        .proxyRefused,
        "the rules of \(proxy) do not allow a connection to \(server); allow it there, or bypass the proxy (no_proxy)"
      )
    case CURLPX_BAD_VERSION.number, CURLPX_UNKNOWN_MODE.number, CURLPX_BAD_ADDRESS_TYPE.number,
      CURLPX_IDENTD.number, CURLPX_IDENTD_DIFFER.number, CURLPX_REPLY_COMMAND_NOT_SUPPORTED.number,
      CURLPX_REPLY_ADDRESS_TYPE_NOT_SUPPORTED.number:
      return LegFailure(
        .proxyRefused,
        "\(proxy) does not speak SOCKS, although its URL says so; check the scheme (socks4a, socks5h) and the port"
      )
    case CURLPX_GSSAPI.number, CURLPX_GSSAPI_PERMSG.number, CURLPX_GSSAPI_PROTECTION.number:
      return LegFailure(
        .proxyRefused,
        "\(proxy) requires Kerberos (GSSAPI), which netopt does not support; configure it to accept a user name and a password"
      )
    case CURLPX_LONG_HOSTNAME.number, CURLPX_LONG_PASSWD.number, CURLPX_LONG_USER.number:
      return LegFailure(
        .proxyRefused,
        "the host name, user name or password for \(proxy) is longer than 255 bytes, the limit of SOCKS")
    case CURLPX_CLOSED.number:
      return LegFailure(.proxy, "\(proxy) closed the connection when it was asked to connect to \(server)")
    case CURLPX_REPLY_CONNECTION_REFUSED.number: return could(not: "the server refused the connection")
    case CURLPX_REPLY_HOST_UNREACHABLE.number: return could(not: "it cannot reach the host")
    case CURLPX_REPLY_NETWORK_UNREACHABLE.number: return could(not: "it cannot reach the network")
    case CURLPX_REPLY_TTL_EXPIRED.number: return could(not: "the route to it is too long (TTL expired)")
    case CURLPX_RESOLVE_HOST.number:
      return could(
        not: "this machine, which resolves names for a socks4 or socks5 URL, cannot resolve the name")
    case CURLPX_REPLY_GENERAL_SERVER_FAILURE.number, CURLPX_REQUEST_FAILED.number:
      return could(not: "it gives no reason")
    default: return could(not: "the SOCKS exchange with it broke off (CURLproxycode \(code))")
    }
  }
}

extension CURLproxycode {
  fileprivate var number: Int { Int(rawValue) }
}
