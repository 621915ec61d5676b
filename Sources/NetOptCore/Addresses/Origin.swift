/// Scheme, host and port: what a connection is opened for (RFC 6454).
@usableFromInline
package struct Origin: Hashable, Sendable, CustomStringConvertible {
  /// The schemes that netopt speaks.
  package enum Scheme: String, Hashable, Sendable {
    /// HTTP over plain TCP.
    case http
    /// HTTP over TLS.
    case https

    /// The port that a URL of this scheme means when it names none.
    package var defaultPort: UInt16 { self == .http ? 80 : 443 }
  }

  /// The scheme.
  package let scheme: Scheme
  /// The host: a name in lower case without a trailing dot, or an IP address without brackets.
  package let host: String
  /// The TCP port.
  package let port: UInt16
  /// The address, when the host is written as one.
  package let address: IPAddress?

  /// Makes an origin. The host is lower-cased and loses one trailing dot, an address takes the one form in which it
  /// is printed; it is not checked further: `HTTPURL` does that for what a person wrote.
  package init(_ scheme: Scheme, host: String, port: UInt16? = nil) {
    self.scheme = scheme
    let name = Origin.normalized(host: host)
    address = IPAddress(name)
    self.host = address?.description ?? name
    self.port = port ?? scheme.defaultPort
  }

  /// Lower-cases ASCII letters and removes one trailing dot: the form in which host names are compared
  /// (RFC 4343, RFC 3986 section 3.2.2).
  package static func normalized(host: String) -> String {
    let isUpper = { (byte: UInt8) in (0x41...0x5a).contains(byte) }
    let name =
      host.utf8.count > 1 && host.utf8.last == UInt8(ascii: ".") ? host.utf8.dropLast() : host.utf8[...]
    guard name.contains(where: isUpper) else { return String(Substring(name)) }
    return String(decoding: name.map { isUpper($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }

  /// The host as it stands in a URL: an IPv6 address in brackets.
  package var hostText: String { address?.hostText ?? host }

  /// Host and port as they stand in a `Host` field: the port only when it is not the scheme's own.
  package var authority: String { port == scheme.defaultPort ? hostText : "\(hostText):\(port)" }

  /// `https://example.com`, `https://example.com:8443`.
  @usableFromInline package var description: String { "\(scheme.rawValue)://\(authority)" }
}
