import NetOptCore

/// Reads a proxy's URL, in the forms that curl(1) accepts. A URL without a scheme means an `http` proxy.
package enum ProxyURL {
  private static let schemes: Set = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

  /// The maximum length of user name and password together, in bytes. If a socket does not take the whole head
  /// of a CONNECT at once, libcurl 7.88.1 reads the bodies of later requests from freed memory
  /// (`Curl_buffer_send` in lib/http.c). With such credentials a head has less than 4 KiB, for which every new
  /// socket has room (tcp(7)).
  private static let longestCredentials = 2048

  /// Whether the connection to the proxy uses TLS.
  static func isSecure(_ url: String) -> Bool { parts(of: url).scheme == "https" }

  /// Whether the URL means a SOCKS proxy.
  package static func isSOCKS(_ url: String) -> Bool { parts(of: url).scheme.hasPrefix("socks") }

  /// Whether the URL has a user name or a password.
  static func hasCredentials(_ url: String) -> Bool { credentials(of: url) != nil }

  /// Returns the user name and password as written in the URL (`USER:PASSWORD`, percent-encoded); `nil` if
  /// there are none.
  package static func credentials(of url: String) -> String? {
    let user = parts(of: url).user
    return user.isEmpty ? nil : String(user)
  }

  /// Returns the host in the URL. An IPv6 address has no brackets.
  static func host(of url: String) -> String {
    let hostAndPort = parts(of: url).hostAndPort
    return hostAndPort.hasPrefix("[")
      ? String(hostAndPort.dropFirst().prefix { $0 != "]" }) : String(hostAndPort.prefix { $0 != ":" })
  }

  /// Returns the URL as messages show it: scheme, host and port, without user name and password. In a
  /// malformed URL, "…" replaces a part that may belong to the password.
  package static func shown(_ url: String) -> String {
    let parts = parts(of: url)
    let hostAndPort = AuthorityText.shown(parts.hostAndPort)
    guard parts.hasScheme else { return hostAndPort }
    // The text before "://" may be part of a password.
    let isScheme = parts.scheme.utf8.allSatisfy { ByteClass.isUnreserved($0) || $0 == UInt8(ascii: "+") }
    return isScheme ? "\(parts.scheme)://\(hostAndPort)" : "…"
  }

  /// Returns what is wrong with a URL, for a message; `nil` if the URL is valid. The text contains no part of
  /// the URL. The user name and the password are checked, because a libcurl that cannot decode them skips the
  /// proxy and connects to servers directly.
  package static func fault(of url: String) -> String? {
    let parts = parts(of: url)
    if !schemes.contains(parts.scheme) {
      return "its scheme is not one of \(schemes.sorted().joined(separator: ", "))"
    }
    if url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }) {
      return "it has a space or a control character"
    }
    if parts.user.utf8.count > longestCredentials {
      return "its user name and password have more than \(longestCredentials) bytes"
    }
    if PercentEncoding.decoded(parts.user.utf8).contains(where: { $0 < 0x20 || $0 == 0x7f }) {
      return "its user name or password has a control character"
    }
    let port =
      parts.hostAndPort.hasPrefix("[")
      ? parts.hostAndPort.drop { $0 != "]" }.dropFirst() : parts.hostAndPort.drop { $0 != ":" }
    if parts.hostAndPort.isEmpty || parts.hostAndPort.hasPrefix(":") { return "it has no host" }
    if !port.isEmpty, port != ":", UInt16(port.dropFirst()).map({ $0 == 0 }) ?? true {
      return "its port is not a number from 1 to 65535"
    }
    return nil
  }

  /// Splits a URL.
  ///
  /// - Returns: the scheme in lower case, `http` if there is none; whether the URL has a scheme; the user
  ///   name and password, empty if there are none; the host with the port, if there is one.
  private static func parts(of url: String) -> (
    scheme: String, hasScheme: Bool, user: Substring, hostAndPort: String
  ) {
    let mark = url.utf8.firstRange(ofBytes: "://")
    let scheme = mark.map { url[..<$0.lowerBound].loweredASCII } ?? "http"
    let rest = url.utf8[(mark?.upperBound ?? url.startIndex)...]
    let whole = rest.prefix { !"/?#".utf8.contains($0) }
    // The last "@" of the whole rest counts, because the password in a malformed URL may contain a slash.
    let at = rest.lastIndex(of: UInt8(ascii: "@"))
    let hostAndPort = at.map { rest[rest.index(after: $0)...].prefix { !"/?#".utf8.contains($0) } } ?? whole
    return (scheme, mark != nil, at.map { Substring(rest[..<$0]) } ?? "", String(Substring(hostAndPort)))
  }
}
