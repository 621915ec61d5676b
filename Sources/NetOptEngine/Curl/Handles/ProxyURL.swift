import NetOptCore

/// A proxy's URL, in the forms that curl(1) accepts. A URL without a scheme is that of an `http` proxy.
package enum ProxyURL {
  private static let schemes: Set = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

  /// Whether the connection to the proxy uses TLS.
  static func isSecure(_ url: String) -> Bool { parts(of: url).scheme == "https" }

  /// Whether it is a SOCKS proxy.
  package static func isSOCKS(_ url: String) -> Bool { parts(of: url).scheme.hasPrefix("socks") }

  /// Whether the URL has a user name or a password.
  static func hasCredentials(_ url: String) -> Bool { credentials(of: url) != nil }

  /// The user name and password as written in the URL; `nil` if it has none.
  package static func credentials(of url: String) -> String? {
    let user = parts(of: url).user
    return user.isEmpty ? nil : String(user)
  }

  /// The host in the URL.
  static func host(of url: String) -> String {
    let hostAndPort = parts(of: url).hostAndPort
    return hostAndPort.hasPrefix("[")
      ? String(hostAndPort.dropFirst().prefix { $0 != "]" }) : String(hostAndPort.prefix { $0 != ":" })
  }

  /// Returns the form of the URL for messages: scheme, host and port, as far as these cannot be parts of a
  /// password.
  package static func shown(_ url: String) -> String {
    let parts = parts(of: url)
    let hostAndPort = AuthorityText.shown(parts.hostAndPort)
    guard parts.hasScheme else { return hostAndPort }
    // The text before "://" may be part of a password.
    let isScheme = parts.scheme.utf8.allSatisfy { ByteClass.isUnreserved($0) || $0 == UInt8(ascii: "+") }
    return isScheme ? "\(parts.scheme)://\(hostAndPort)" : "…"
  }

  /// Returns what is wrong with a URL, without repeating the URL; `nil` if it is valid. When libcurl cannot
  /// decode the user name or the password, it skips the proxy and connects to servers directly.
  package static func fault(of url: String) -> String? {
    let parts = parts(of: url)
    if !schemes.contains(parts.scheme) {
      return "its scheme is not one of \(schemes.sorted().joined(separator: ", "))"
    }
    if url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }) {
      return "it has a space or a control character"
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

  private static func parts(of url: String) -> (
    scheme: String, hasScheme: Bool, user: Substring, hostAndPort: String
  ) {
    let mark = url.utf8.firstRange(of: "://".utf8)
    let scheme = mark.map { url[..<$0.lowerBound].loweredASCII } ?? "http"
    let rest = url.utf8[(mark?.upperBound ?? url.startIndex)...]
    let whole = rest.prefix { !"/?#".utf8.contains($0) }
    // In a malformed URL, the password may contain a slash.
    let at = rest.lastIndex(of: UInt8(ascii: "@"))
    let hostAndPort = at.map { rest[rest.index(after: $0)...].prefix { !"/?#".utf8.contains($0) } } ?? whole
    return (scheme, mark != nil, at.map { Substring(rest[..<$0]) } ?? "", String(Substring(hostAndPort)))
  }
}
