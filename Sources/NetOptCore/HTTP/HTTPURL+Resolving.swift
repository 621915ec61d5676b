extension HTTPURL {
  /// Resolves a reference, such as the value of `Location`, against this URL (RFC 3986, section 5.2, strictly). The
  /// path that results has no dot segments; a space, which servers do write, is percent-encoded.
  ///
  /// - Throws: `NetOptError.Code.invalidURL` when the result is not an `http` or `https` URL.
  public func resolving(_ reference: String) throws(NetOptError) -> HTTPURL {
    if let bad = reference.utf8.first(where: { $0 < 0x20 || $0 == 0x7f }) {
      throw NetOptError(
        .invalidURL, phase: .resolve,
        "\(Self.quoted(reference)) is not a usable reference: it has the control character \(bad)")
    }
    let text = Self.encoded(reference.utf8.prefix { $0 != UInt8(ascii: "#") })
    if Self.hasScheme(text) || text.hasPrefix("//") {
      let url = try HTTPURL(Self.hasScheme(text) ? text : "\(origin.scheme.rawValue):\(text)")
      return HTTPURL(origin: url.origin, target: Self.removingDots(url.path) + Self.suffix(url.query))
    }
    let path = text.prefix { $0 != "?" }
    let query = text.firstIndex(of: "?").map { text[text.index(after: $0)...] }
    if path.isEmpty {
      return HTTPURL(origin: origin, target: self.path + Self.suffix(query ?? self.query))
    }
    let merged = path.hasPrefix("/") ? path : self.path.prefix(through: lastSlash) + path
    return HTTPURL(origin: origin, target: Self.removingDots(merged) + Self.suffix(query))
  }

  private var lastSlash: String.Index { path.lastIndex(of: "/") ?? path.startIndex }

  private static func suffix(_ query: Substring?) -> String { query.map { "?" + $0 } ?? "" }

  /// Whether a reference begins with a scheme (RFC 3986, section 3.1).
  private static func hasScheme(_ reference: String) -> Bool {
    guard let first = reference.first, first.isLetter else { return false }
    let scheme = reference.prefix { $0.isLetter || $0.isNumber || "+-.".contains($0) }
    return reference[scheme.endIndex...].first == ":"
  }

  /// Removes the segments "." and ".." (RFC 3986, section 5.2.4).
  private static func removingDots(_ path: Substring) -> String {
    let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    var kept: [Substring] = []
    for segment in segments where segment != "." {
      if segment != ".." {
        kept.append(segment)
      } else if !kept.isEmpty {
        kept.removeLast()
      }
    }
    // A path that ends in a dot segment names a directory.
    if segments.last == "." || segments.last == ".." { kept.append("") }
    return "/" + kept.joined(separator: "/")
  }
}
