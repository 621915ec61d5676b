import NetOptCore

/// A cookie that a server has set (RFC 6265). Names, values and paths are compared as bytes: as characters,
/// `e` with a combining accent would be equal to `é`.
struct Cookie: Sendable {
  let name: String
  let value: String
  /// The host that receives the cookie: a name in lower case, or an IP address.
  let domain: String
  /// Whether only `domain` itself receives the cookie, and not the hosts below it.
  let isHostOnly: Bool
  /// The path that the paths of requests must match.
  let path: String
  /// Whether only protected requests receive the cookie.
  let isSecure: Bool
  /// When the cookie expires, in seconds since 1970; `nil` for a cookie that does not expire.
  let expiry: Int64?

  /// The maximum number of bytes of name and value together. Longer cookies are ignored, as in browsers.
  private static let longest = 4096

  /// Reads the value of a `Set-Cookie` field (RFC 6265, sections 5.2 and 5.3, with the additions of
  /// draft-ietf-httpbis-rfc6265bis-20).
  ///
  /// Browsers refuse cookies for whole registries, such as `co.uk`, with the help of the Public Suffix List.
  /// netopt needs no such list, because it sends cookies only to the hosts in its configuration. It refuses a
  /// domain of a single label, unless the domain is the host itself.
  ///
  /// - Parameters:
  ///   - text: the value of the field.
  ///   - url: the URL of the request.
  ///   - isProtected: whether the response came over TLS.
  ///   - now: the second since 1970.
  /// - Returns: `nil` for a cookie that must be ignored.
  init?(_ text: String, from url: HTTPURL, isProtected: Bool, at now: Int64) {
    let isControl = { (byte: UInt8) in byte < 0x20 && byte != UInt8(ascii: "\t") || byte == 0x7f }
    // U+FFFD stands for bytes that are no UTF-8. The server would not get them back as it sent them.
    guard !text.utf8.contains(where: isControl), text.utf8.firstRange(ofBytes: "\u{fffd}") == nil else {
      return nil
    }
    var parts = text.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)[...]
    // The text before the first semicolon. Without an equals sign, it is the value of a cookie without name.
    let pair = CookieAttributes.pair(parts.removeFirst())
    (name, value) = pair.value.map { (pair.name, $0) } ?? ("", pair.name)
    guard !(name.isEmpty && value.isEmpty), name.utf8.count + value.utf8.count <= Self.longest else {
      return nil
    }
    let attributes = CookieAttributes(parts, at: now)

    let host = url.origin.host
    path = attributes.path ?? Self.defaultPath(of: url)
    isSecure = attributes.isSecure
    expiry = attributes.maxAge ?? attributes.expires
    isHostOnly = attributes.domain.isEmpty
    domain = isHostOnly ? host : attributes.domain
    guard domain == host || Self.isBelow(host, domain) && domain.utf8.contains(UInt8(ascii: ".")),
      !isSecure || isProtected
    else { return nil }
    // A prefix of the name promises to the server how the cookie was set. A cookie without name would
    // promise the same if its value began with the prefix.
    let promise = (name.isEmpty ? value : name).loweredASCII.utf8
    if promise.starts(with: "__secure-".utf8), !isSecure || name.isEmpty { return nil }
    if promise.starts(with: "__host-".utf8),
      !isSecure || !isHostOnly || attributes.path != "/" || name.isEmpty
    {
      return nil
    }
  }

  /// The path of a cookie without a path: the folder of the URL (RFC 6265, section 5.1.4).
  private static func defaultPath(of url: HTTPURL) -> String {
    guard let slash = url.path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > url.path.startIndex else {
      return "/"
    }
    return String(url.path[..<slash])
  }

  /// Whether a host is below a domain (RFC 6265, section 5.1.3). No host is below an IP address.
  private static func isBelow(_ host: String, _ domain: String) -> Bool {
    let (all, end) = (host.utf8, domain.utf8)
    return all.count > end.count && all.suffix(end.count).elementsEqual(end)
      && all.dropLast(end.count).last == UInt8(ascii: ".") && IPAddress(host) == nil
  }

  /// Whether a request receives the cookie. The caller has checked that the host is `domain` or below it, and
  /// that the cookie has not ended.
  func isFor(_ url: HTTPURL, isProtected: Bool) -> Bool {
    (!isHostOnly || url.origin.host == domain) && matches(url.path) && (!isSecure || isProtected)
  }

  /// Whether a path is the cookie's, or is below it (RFC 6265, section 5.1.4). `..` in a path has no meaning
  /// here, as in the rest of netopt.
  private func matches(_ other: Substring) -> Bool {
    guard other.utf8.starts(with: path.utf8) else { return false }
    let rest = other.utf8.dropFirst(path.utf8.count)
    return rest.isEmpty || path.utf8.last == UInt8(ascii: "/") || rest.first == UInt8(ascii: "/")
  }

  /// Whether this cookie replaces another cookie of the same domain.
  func replaces(_ other: Cookie) -> Bool {
    isHostOnly == other.isHostOnly && name.utf8.elementsEqual(other.name.utf8)
      && path.utf8.elementsEqual(other.path.utf8)
  }

  /// Whether this cookie, which did not come over TLS, would hide a cookie that only protected requests
  /// receive.
  func hides(_ other: Cookie) -> Bool {
    other.isSecure && name.utf8.elementsEqual(other.name.utf8) && other.matches(path[...])
      && (domain == other.domain || Self.isBelow(domain, other.domain) || Self.isBelow(other.domain, domain))
  }

  /// Whether requests get the same cookie as before when one of the two cookies replaces the other.
  func isEqual(to other: Cookie) -> Bool {
    value.utf8.elementsEqual(other.value.utf8) && isSecure == other.isSecure
  }

  /// Whether the cookie has ended.
  func hasEnded(at now: Int64) -> Bool { expiry.map { $0 <= now } ?? false }

  /// The cookie in a `Cookie` field.
  var text: String { name.isEmpty ? value : "\(name)=\(value)" }
}
