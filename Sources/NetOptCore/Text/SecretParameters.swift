/// Hides secret parameters of URLs for messages and files: `q=lamp&access_token=[hidden]`.
///
/// A value counts as secret because of the parameter's name (`SecretNames`), or because of the value's form,
/// such as a credential or a URL with a password.
package enum SecretParameters {
  /// The text in place of a secret.
  private static let mark = "[hidden]"
  /// The maximum number of times that a text is percent-decoded to search for a secret, because a secret may
  /// be percent-encoded several times over.
  private static let deepest = 4

  /// Returns a query in which `[hidden]` replaces the secrets: the values of parameters whose names suggest
  /// secrets, and values that themselves contain a secret, such as a URL with a password.
  package static func hidden(inQuery query: some StringProtocol) -> String {
    hidden(Array(query.utf8)[...], between: "&")
  }

  /// Returns a URL, or a text meant as a URL, without its secrets. Hides user names and passwords, secret
  /// parameters in the query and the path, and the whole fragment, which may contain a token (RFC 6749,
  /// section 4.2.2).
  package static func hidden(inURL url: String) -> String {
    let bytes = Array(url.utf8)
    let upToFragment = bytes.prefix { $0 != UInt8(ascii: "#") }
    let path = upToFragment.prefix { $0 != UInt8(ascii: "?") }
    let query = upToFragment[path.endIndex...]
    let cleaned = withoutUserInformation(path)
    let authority = authority(of: cleaned)
    let shown =
      String(decoding: cleaned[..<authority.endIndex], as: UTF8.self)
      + hidden(cleaned[authority.endIndex...], between: "/;") + hidden(query, between: "&")
    return upToFragment.count < bytes.count ? shown + "#…" : shown
  }

  /// Returns the authority (`host:port`) of a URL, which may have no scheme. Returns an empty slice at the
  /// start of the URL if the URL has no port. The caller searches only the text after the returned slice for
  /// secrets. Otherwise it would take `auth.a.test:8443` for a JSON member with a secret name.
  private static func authority(of path: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let scheme = path.prefix(while: ByteClass.isUnreserved)
    let hasScheme = path[scheme.endIndex...].starts(with: "://".utf8)
    let authority = path.dropFirst(hasScheme ? scheme.count + 3 : 0).prefix { !"/;".utf8.contains($0) }
    let port = authority.reversed().prefix(while: ByteClass.isDigit)
    let isHost =
      port.count < authority.count && authority[authority.endIndex - port.count - 1] == UInt8(ascii: ":")
    return isHost ? authority : path.prefix(0)
  }

  /// Returns a URL up to its query, in which an ellipsis replaces each user name and password before an "@".
  /// The path may contain a further URL, as in `/proxy/https://user:password@b.test/`.
  private static func withoutUserInformation(_ path: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard hasUserInformation(Array(path)) else { return path }
    var shown: [UInt8] = []
    var rest = path
    while let slashes = rest.firstRange(ofBytes: "//") {
      shown += rest[..<slashes.upperBound]
      rest = rest[slashes.upperBound...]
      let authority = rest.prefix { $0 != UInt8(ascii: "/") }
      if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
        shown += "…".utf8
        rest = rest[at...]
      }
    }
    return (shown + rest)[...]
  }

  /// Replaces secrets in a text whose parts are parameters (`name=value`) or other text.
  ///
  /// - Parameter delimiters: the ASCII characters that separate the parts.
  private static func hidden(_ bytes: ArraySlice<UInt8>, between delimiters: StaticString) -> String {
    let isDelimiter = { (byte: UInt8) in delimiters.withUTF8Buffer { $0.contains(byte) } }
    var shown: [UInt8] = []
    var rest = bytes
    while let first = rest.first {
      // The "?" before the query is also a delimiter.
      let start = rest.prefix(isDelimiter(first) || first == UInt8(ascii: "?") ? 1 : 0)
      let piece = rest.dropFirst(start.count).prefix { !isDelimiter($0) }
      rest = rest.dropFirst(start.count + piece.count)
      shown += start
      let name = piece.prefix { $0 != UInt8(ascii: "=") }
      let value = piece.dropFirst(name.count + 1)
      if !value.isEmpty, isSecret(name) || hasSecret(value) {
        shown += name + "=\(mark)".utf8
      } else if name.count == piece.count, hasSecret(piece) {
        shown += mark.utf8
      } else {
        shown += piece
      }
    }
    return String(decoding: shown, as: UTF8.self)
  }

  /// Whether a parameter's name suggests a secret, as written or after percent-decoding.
  private static func isSecret(_ name: ArraySlice<UInt8>) -> Bool {
    unwrapped(name).contains { SecretNames.contains(String(decoding: $0, as: UTF8.self)) }
  }

  /// Whether a text contains a secret parameter, a secret JSON member, a password or a credential, as written
  /// or after percent-decoding.
  private static func hasSecret(_ text: ArraySlice<UInt8>) -> Bool {
    unwrapped(text).contains { hasUserInformation($0) || hasSecretMember($0) || isCredential($0) }
  }

  /// Whether the text begins like a credential: like the value of an `Authorization` field (RFC 6750, RFC
  /// 7617), with a space or "+" after the scheme, or like a JSON object in Base64 (`eyJ`), with which a JSON
  /// Web Token begins (RFC 7519).
  private static func isCredential(_ text: [UInt8]) -> Bool {
    let start = String(decoding: text.prefix(7), as: UTF8.self).loweredASCII
    return ["bearer ", "bearer+", "basic ", "basic+", "eyj"].contains { start.hasPrefix($0) }
  }

  /// Whether the text contains a user name and a password before an "@" (`user:password@`), or a user name
  /// alone between "//" and an "@" (`//user@`; RFC 3986, section 3.2.1). The slashes need not be there before
  /// a user name with a password.
  private static func hasUserInformation(_ text: [UInt8]) -> Bool {
    for at in text.indices where text[at] == UInt8(ascii: "@") {
      let run = text[..<at].reversed().prefix { !"/\\?#&;, \"'<>(){}@".utf8.contains($0) }
      if run.dropLast().contains(UInt8(ascii: ":")) { return true }
    }
    var rest = text[...]
    while let slashes = rest.firstRange(ofBytes: "//") {
      rest = rest[slashes.upperBound...]
      if rest.prefix(while: { !"/?#".utf8.contains($0) }).contains(UInt8(ascii: "@")) { return true }
    }
    return false
  }

  /// Whether the text contains a name that suggests a secret, followed by "=", ":" or ">": a parameter, a
  /// JSON member or an XML element.
  private static func hasSecretMember(_ text: [UInt8]) -> Bool {
    var name: [UInt8] = []
    var isQuoted = false
    for byte in text {
      switch byte {
      case UInt8(ascii: "="), UInt8(ascii: ":"), UInt8(ascii: ">"):
        if SecretNames.contains(String(decoding: name, as: UTF8.self)) { return true }
        (name, isQuoted) = ([], false)
      case UInt8(ascii: "\""), UInt8(ascii: "'"): isQuoted = !name.isEmpty
      case UInt8(ascii: " "): break
      case _ where ByteClass.isUnreserved(byte) || "[]".utf8.contains(byte):
        if isQuoted { (name, isQuoted) = ([], false) }
        name.append(byte)
      default: (name, isQuoted) = ([], false)
      }
    }
    return false
  }

  /// Returns the text, and the results of percent-decoding it once, twice and so on, up to `deepest` times.
  static func unwrapped(_ text: ArraySlice<UInt8>) -> [[UInt8]] {
    var forms = [Array(text)]
    while forms.count <= deepest, let last = forms.last, last.contains(UInt8(ascii: "%")) {
      let decoded = PercentEncoding.decoded(last)
      if decoded == last { break }
      forms.append(decoded)
    }
    return forms
  }
}
