import NetOptCore
import NetOptEngine

/// A cookie that a server has set (RFC 6265).
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
  /// The second since 1970 from which on the cookie is no longer valid; `nil` for a cookie without end.
  let expiry: Int64?

  /// The maximum number of bytes of name and value together. Longer cookies are ignored, as in browsers.
  private static let longest = 4096
  /// The maximum number of bytes of the value of an attribute. Longer attributes are ignored.
  private static let longestAttribute = 1024
  /// The longest time that a server can set, in seconds: 400 days.
  private static let longestAge: Int64 = 400 * 86_400

  /// Reads the value of a `Set-Cookie` field (RFC 6265, sections 5.2 and 5.3, with the additions of
  /// draft-ietf-httpbis-rfc6265bis-20).
  ///
  /// Browsers refuse cookies for whole registries, such as `co.uk`, with the help of the Public Suffix List.
  /// A client needs no such list, because it sends cookies only to the hosts in its configuration. It refuses
  /// a domain of a single label.
  ///
  /// - Parameters:
  ///   - text: the value of the field.
  ///   - url: the URL of the request.
  ///   - isProtected: whether the response came over TLS from a verified server.
  ///   - now: the second since 1970.
  /// - Returns: `nil` for a cookie that must be ignored.
  init?(_ text: String, from url: HTTPURL, isProtected: Bool, at now: Int64) {
    let isControl = { (byte: UInt8) in byte < 0x20 && byte != UInt8(ascii: "\t") || byte == 0x7f }
    guard !text.utf8.contains(where: isControl) else { return nil }
    var parts = text.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)[...]
    // The text before the first semicolon. Without an equals sign, it is the value of a cookie without name.
    let pair = Self.pair(parts.removeFirst())
    (name, value) = pair.value.map { (pair.name, $0) } ?? ("", pair.name)
    guard !(name.isEmpty && value.isEmpty), name.utf8.count + value.utf8.count <= Self.longest else {
      return nil
    }
    let attributes = Attributes(parts, at: now)

    let host = url.origin.host
    path = attributes.path ?? Self.defaultPath(of: url)
    isSecure = attributes.isSecure
    expiry = attributes.maxAge ?? attributes.expires
    isHostOnly = attributes.domain.isEmpty
    domain = isHostOnly ? host : attributes.domain
    guard isHostOnly || Self.covers(domain, host) else { return nil }
    guard isHostOnly || domain == host || domain.utf8.contains(UInt8(ascii: ".")) else { return nil }
    guard !isSecure || isProtected else { return nil }
    // A prefix of the name promises to the server how the cookie was set. A cookie without name would
    // promise the same if its value began with the prefix.
    let promise = (name.isEmpty ? value : name).loweredASCII
    if promise.hasPrefix("__secure-"), !isSecure || name.isEmpty { return nil }
    if promise.hasPrefix("__host-"), !isSecure || !isHostOnly || attributes.path != "/" || name.isEmpty {
      return nil
    }
  }

  /// The attributes of a cookie. Of several with the same name, the last counts.
  private struct Attributes {
    var domain = ""
    var path: String?
    var isSecure = false
    var expires: Int64?
    var maxAge: Int64?

    init(_ parts: ArraySlice<Substring.UTF8View>, at now: Int64) {
      let limit = now.addingClamped(Cookie.longestAge)
      for part in parts {
        let pair = Cookie.pair(part)
        let value = pair.value ?? ""
        guard value.utf8.count <= Cookie.longestAttribute else { continue }
        switch pair.name.loweredASCII {
        case "domain":
          domain = Origin.normalized(host: value.hasPrefix(".") ? String(value.dropFirst()) : value)
        case "path": path = value.hasPrefix("/") ? value : nil
        case "secure": isSecure = true
        case "expires": expires = CookieDate.seconds(of: value).map { min($0, limit) } ?? expires
        case "max-age":
          maxAge = Cookie.seconds(value).map { now.addingClamped(min($0, Cookie.longestAge)) } ?? maxAge
        default: break
        }
      }
    }
  }

  /// Splits a text at its first equals sign, and removes spaces and tabs around both parts.
  ///
  /// - Returns: the whole text as the name if there is no equals sign.
  private static func pair(_ text: Substring.UTF8View) -> (name: String, value: String?) {
    let trimmed = { (part: Substring.UTF8View) in
      let rest = part.drop(while: ByteClass.isSpaceOrTab)
      let end = rest.lastIndex { !ByteClass.isSpaceOrTab($0) }.map(rest.index(after:)) ?? rest.startIndex
      return String(Substring(rest[..<end]))
    }
    guard let sign = text.firstIndex(of: UInt8(ascii: "=")) else { return (trimmed(text), nil) }
    return (trimmed(text[..<sign]), trimmed(text[text.index(after: sign)...]))
  }

  /// Reads the value of `Max-Age`; `nil` if it is no number. A number that is too large for 64 bits counts as
  /// the largest.
  private static func seconds(_ text: String) -> Int64? {
    let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
    guard !digits.isEmpty, digits.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    // Any negative time means the same: the cookie has ended.
    if digits.count < text.utf8.count { return 0 }
    return Int64(text) ?? .max
  }

  /// The path of a cookie without a path: the folder of the URL (RFC 6265, section 5.1.4).
  private static func defaultPath(of url: HTTPURL) -> String {
    guard let slash = url.path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > url.path.startIndex else {
      return "/"
    }
    return String(url.path[..<slash])
  }

  /// Whether a host is a domain, or is below it (RFC 6265, section 5.1.3).
  private static func covers(_ domain: String, _ host: String) -> Bool {
    guard host != domain else { return true }
    return host.hasSuffix("." + domain) && IPAddress(host) == nil
  }

  /// Whether a request receives the cookie, apart from its end.
  func isFor(_ url: HTTPURL, isProtected: Bool) -> Bool {
    let host = url.origin.host
    return (isHostOnly ? host == domain : Self.covers(domain, host)) && matches(url.path)
      && (!isSecure || isProtected)
  }

  /// Whether a path is the cookie's, or is below it (RFC 6265, section 5.1.4).
  private func matches(_ other: Substring) -> Bool {
    guard other.utf8.starts(with: path.utf8) else { return false }
    let rest = other.utf8.dropFirst(path.utf8.count)
    return rest.isEmpty || path.utf8.last == UInt8(ascii: "/") || rest.first == UInt8(ascii: "/")
  }

  /// Whether this cookie replaces another one.
  func replaces(_ other: Cookie) -> Bool {
    name == other.name && domain == other.domain && isHostOnly == other.isHostOnly && path == other.path
  }

  /// Whether this cookie, which did not come over TLS, would hide a cookie that only protected requests
  /// receive.
  func hides(_ other: Cookie) -> Bool {
    other.isSecure && name == other.name && matchesDomain(of: other) && other.matches(path[...])
  }

  private func matchesDomain(of other: Cookie) -> Bool {
    Self.covers(domain, other.domain) || Self.covers(other.domain, domain)
  }

  /// Whether the cookie has ended.
  func hasEnded(at now: Int64) -> Bool { expiry.map { $0 <= now } ?? false }

  /// The cookie in a `Cookie` field.
  var text: String { name.isEmpty ? value : "\(name)=\(value)" }
}
