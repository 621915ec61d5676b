package import NetOptCore

/// The name servers of a resolver, and its timeouts and tries.
package struct ResolverConfiguration: Sendable {
  /// The name servers, as `ip`, `ip:port` or `[ipv6]:port`. Without a port, the port is 53. Default: none, so
  /// the resolver uses the system's name servers (resolv.conf(5)).
  package var servers: [String] = []
  /// The file with the system's name servers. Default: `/etc/resolv.conf`.
  package var systemFile = "/etc/resolv.conf"
  /// How long the resolver waits for the response to its first query to a server. Each further try doubles
  /// this time. Default: 500 ms.
  package var timeout = Duration.milliseconds(500)
  /// How many times the resolver queries each server. Default: 2.
  package var tries = 2

  /// Makes a configuration with the defaults.
  package init() {}
}

extension ResolverConfiguration {
  /// The permitted range of `timeout`.
  package static let timeouts = SettingRange(Duration.milliseconds(1) ... .seconds(60), "1 ms to 60 s")
  /// The permitted range of `tries`.
  package static let attempts = SettingRange(1...10)

  /// The entries of `servers` as endpoints.
  ///
  /// - Throws: `invalidConfiguration` with the invalid entry and the permitted forms.
  func serverEndpoints() throws(NetOptError) -> [IPEndpoint] {
    var endpoints: [IPEndpoint] = []
    for server in servers {
      guard let endpoint = Self.endpoint(server) else {
        throw NetOptError(
          .invalidConfiguration, phase: .resolve,
          "\"\(server)\" is not the address of a name server; write 192.0.2.1, 192.0.2.1:5353 or [2001:db8::1]:5353"
        )
      }
      endpoints.append(endpoint)
    }
    return endpoints
  }

  /// Checks `timeout` and `tries`.
  ///
  /// - Throws: `invalidConfiguration` with the name of the setting and its range.
  func check() throws(NetOptError) {
    try Self.timeouts.check(timeout, "timeout", in: .resolve)
    try Self.attempts.check(tries, "tries", in: .resolve)
  }

  /// Whether a text has one of the permitted forms of an entry of `servers`.
  package static func isServer(_ text: String) -> Bool { endpoint(text) != nil }

  /// Parses an entry of `servers`. `nil` if the entry has none of the permitted forms.
  private static func endpoint(_ text: String) -> IPEndpoint? {
    if let address = IPAddress(text) { return IPEndpoint(address, port: 53) }
    let host: Substring
    let rest: Substring
    if text.hasPrefix("[") {
      guard let close = text.firstIndex(of: "]") else { return nil }
      host = text[text.index(after: text.startIndex)..<close]
      rest = text[text.index(after: close)...]
      guard host.contains(":") else { return nil }
    } else {
      let colon = text.firstIndex(of: ":") ?? text.endIndex
      host = text[..<colon]
      rest = text[colon...]
    }
    guard let address = IPAddress(host) else { return nil }
    if rest.isEmpty { return IPEndpoint(address, port: 53) }
    let digits = rest.dropFirst()
    guard rest.hasPrefix(":"), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let port = UInt16(digits), port > 0
    else { return nil }
    return IPEndpoint(address, port: port)
  }
}
