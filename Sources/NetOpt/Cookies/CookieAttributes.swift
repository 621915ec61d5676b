import NetOptCore

/// The attributes of a `Set-Cookie` field (RFC 6265, section 5.2). Of several with the same name, the last
/// counts.
struct CookieAttributes {
  /// The domain in lower case; empty for none.
  private(set) var domain = ""
  private(set) var path: String?
  private(set) var isSecure = false
  /// The time in `Expires`, in seconds since 1970, and at most 400 days ahead.
  private(set) var expires: Int64?
  /// The time that `Max-Age` leads to, in seconds since 1970, and at most 400 days ahead.
  private(set) var maxAge: Int64?

  /// The maximum number of bytes of the value of an attribute. Longer attributes are ignored.
  private static let longest = 1024
  /// The longest time that a server can set, in seconds: 400 days.
  private static let longestAge: Int64 = 400 * 86_400

  /// Reads the attributes.
  ///
  /// - Parameters:
  ///   - parts: the text between two semicolons of each attribute.
  ///   - now: the second since 1970.
  init(_ parts: ArraySlice<Substring.UTF8View>, at now: Int64) {
    let limit = now.addingClamped(Self.longestAge)
    for part in parts {
      let pair = Self.pair(part)
      let value = pair.value ?? ""
      guard value.utf8.count <= Self.longest else { continue }
      switch pair.name.loweredASCII {
      case "domain": domain = Self.domain(value)
      case "path": path = value.utf8.first == UInt8(ascii: "/") ? value : nil
      case "secure": isSecure = true
      case "expires": expires = CivilTime(cookie: value).map { min($0.seconds, limit) } ?? expires
      case "max-age": maxAge = Self.seconds(value).map { min(now.addingClamped($0), limit) } ?? maxAge
      default: break
      }
    }
  }

  /// Splits a text at its first equals sign, and removes spaces and tabs around both parts.
  ///
  /// - Returns: the whole text as the name, and no value, if there is no equals sign.
  static func pair(_ text: Substring.UTF8View) -> (name: String, value: String?) {
    let trimmed = { (part: Substring.UTF8View) in String(Substring(ByteClass.trimmed(part))) }
    guard let sign = text.firstIndex(of: UInt8(ascii: "=")) else { return (trimmed(text), nil) }
    return (trimmed(text[..<sign]), trimmed(text[text.index(after: sign)...]))
  }

  /// Returns a domain as the hosts of URLs are written, without the dot at its beginning.
  private static func domain(_ text: String) -> String {
    let name = String(
      Substring(text.utf8.first == UInt8(ascii: ".") ? text.utf8.dropFirst() : text.utf8[...]))
    return IPAddress(name)?.description ?? name.loweredASCII
  }

  /// Reads the value of `Max-Age`; `nil` if it is no number. A number that is too large for 64 bits counts as
  /// the largest.
  private static func seconds(_ text: String) -> Int64? {
    let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
    guard !digits.isEmpty, digits.allSatisfy(ByteClass.isDigit) else { return nil }
    // Any negative time means the same: the cookie has ended.
    if digits.count < text.utf8.count { return 0 }
    return Int64(text) ?? .max
  }
}
