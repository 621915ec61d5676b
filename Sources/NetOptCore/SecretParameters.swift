/// Parameters of URLs as people and files may see them: `q=lamp&access_token=[hidden]`.
///
/// What a name says of its value is all there is to go by, so that rather too much is hidden than too little.
package enum SecretParameters {
  private static let words = [
    "token", "secret", "pass", "pwd", "key", "auth", "sig", "session", "sid", "credential", "code", "jwt",
    "otp", "pin",
  ]
  /// How often a URL may be the parameter of another one: what is deeper is hidden.
  private static let deepest = 4

  /// A query with the values hidden whose names speak of secrets, and the values that have such parameters in them.
  package static func hidden(inQuery query: some StringProtocol) -> String {
    hidden(Array(query.utf8)[...], between: "&") ?? String(query)
  }

  /// A URL, or a text that was meant as one, with its secrets hidden: parameters of the query and of the path, and the fragment,
  /// in which tokens travel too (RFC 6749, section 4.2.2).
  package static func hidden(inURL url: String) -> String {
    let bytes = Array(url.utf8)
    let upToFragment = bytes.prefix { $0 != UInt8(ascii: "#") }
    let path = upToFragment.prefix { $0 != UInt8(ascii: "?") }
    let query = upToFragment[path.endIndex...]
    let shown = (hidden(path, between: "/;") ?? text(path)) + (hidden(query, between: "&") ?? text(query))
    return upToFragment.count < bytes.count ? shown + "#…" : shown
  }

  /// The text with what is secret hidden, `nil` when nothing is.
  private static func hidden(
    _ bytes: ArraySlice<UInt8>, between delimiters: StaticString, depth: Int = 0
  ) -> String? {
    let isDelimiter = { (byte: UInt8) in delimiters.withUTF8Buffer { $0.contains(byte) } }
    var shown: [UInt8] = []
    var hasSecret = false
    var rest = bytes
    while !rest.isEmpty {
      let piece = rest.prefix(1) + rest.dropFirst().prefix { !isDelimiter($0) }
      rest = rest.dropFirst(piece.count)
      let name = piece.prefix { $0 != UInt8(ascii: "=") }
      if isSecret(Array(name), value: Array(piece.dropFirst(name.count + 1)), depth) {
        shown += name + Array("=[hidden]".utf8)
        hasSecret = true
      } else {
        shown += piece
      }
    }
    return hasSecret ? text(shown[...]) : nil
  }

  private static func isSecret(_ name: [UInt8], value: [UInt8], _ depth: Int) -> Bool {
    guard !value.isEmpty else { return false }
    let readable = text(PercentEncoding.decoded(name, plus: true)[...]).lowercased()
    if words.contains(where: readable.contains) { return true }
    // A URL or a query as a value: ?next=https%3A%2F%2Fb.test%2F%3Ftoken%3D…
    guard value.contains(UInt8(ascii: "=")) || value.contains(UInt8(ascii: "%")) else { return false }
    let inner = PercentEncoding.decoded(value)
    return depth == deepest || hidden(inner[...], between: "?&;#", depth: depth + 1) != nil
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}
