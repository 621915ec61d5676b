/// The scheme, host and port of a URL (RFC 6454). A connection is opened for one origin.
@usableFromInline
package struct Origin: Hashable, Sendable, CustomStringConvertible {
  /// The schemes that netopt supports.
  package enum Scheme: String, Hashable, Sendable {
    /// HTTP over plain TCP.
    case http
    /// HTTP over TLS.
    case https

    /// The port if a URL of this scheme names none: 80 or 443.
    package var defaultPort: UInt16 { self == .http ? 80 : 443 }
  }

  /// The scheme.
  package let scheme: Scheme
  /// The host: a name in lower case without a trailing dot, or an IP address without brackets.
  package let host: String
  /// The TCP port.
  package let port: UInt16
  /// The host as an IP address; `nil` if the host is a name.
  package let address: IPAddress?

  /// Creates an origin. Converts the host to lower case and removes one trailing dot. Converts an IP address
  /// to the form that `IPAddress` prints. Does not validate the host, because `HTTPURL` validates user input.
  ///
  /// - Parameter port: the TCP port; `nil` for the default port of the scheme.
  package init(_ scheme: Scheme, host: String, port: UInt16? = nil) {
    self.scheme = scheme
    let name = Origin.normalized(host: host)
    address = IPAddress(name)
    self.host = address?.description ?? name
    self.port = port ?? scheme.defaultPort
  }

  /// Whether both origins are equal. `address` follows from `host`, so it needs no comparison.
  @usableFromInline
  package static func == (a: Origin, b: Origin) -> Bool {
    a.port == b.port && a.scheme == b.scheme && a.host == b.host
  }

  /// Hashes the origin. The scheme counts as a bit, because the derived hash of `Scheme` hashes its text.
  @usableFromInline
  package func hash(into hasher: inout Hasher) {
    hasher.combine(host)
    hasher.combine(port)
    hasher.combine(scheme == .https)
  }

  /// Converts ASCII letters to lower case and removes one trailing dot. Host names are compared in this form
  /// (RFC 4343, RFC 3986 section 3.2.2).
  package static func normalized(host: String) -> String {
    let isUpper = { (byte: UInt8) in (0x41...0x5a).contains(byte) }
    let name =
      host.utf8.count > 1 && host.utf8.last == UInt8(ascii: ".") ? host.utf8.dropLast() : host.utf8[...]
    guard name.contains(where: isUpper) else { return String(Substring(name)) }
    return String(decoding: name.map { isUpper($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }

  /// The host for a URL: an IPv6 address has brackets.
  package var hostText: String { address?.hostText ?? host }

  /// The value of a `Host` field: the host, and the port if it is not the scheme's default port.
  package var authority: String { port == scheme.defaultPort ? hostText : "\(hostText):\(port)" }

  /// The text form: `https://example.com`, `https://example.com:8443`.
  @usableFromInline package var description: String { "\(scheme.rawValue)://\(authority)" }
}
