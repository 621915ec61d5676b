extension HTTPURL {
  /// The maximum length in bytes of a reference that the client follows. Without a limit, a server could
  /// keep the client busy with a chain of redirects to very long references. RFC 9110, section 4.1,
  /// recommends that recipients support at least 8,000 octets.
  package static let longestReference = 16 * 1024

  /// Resolves a reference, such as the value of `Location`, against this URL (RFC 3986, section 5.2, strict).
  /// The result has no dot segments, with one exception: if the reference has no path, the result has the
  /// path of this URL, which may contain dot segments. Spaces in the reference are percent-encoded, because
  /// some servers send them.
  ///
  /// - Throws: `NetOptError.Code.invalidURL` when the result is not an `http` or `https` URL.
  public func resolving(_ reference: String) throws(NetOptError) -> HTTPURL {
    if let bad = reference.utf8.first(where: { $0 < 0x20 || $0 == 0x7f }) {
      throw NetOptError(
        .invalidURL, phase: .resolve,
        "\(Self.quoted(reference)) is not a usable URL reference: it has the control character \(bad)")
    }
    let text = Self.encoded(reference.utf8.prefix { $0 != UInt8(ascii: "#") })
    if Self.hasScheme(text) || text.hasPrefix("//") {
      let url = try HTTPURL(Self.hasScheme(text) ? text : "\(origin.scheme.rawValue):\(text)")
      return HTTPURL(origin: url.origin, target: Self.removingDots(url.path) + Self.suffix(url.query))
    }
    // The search compares bytes, because comparing characters takes a hundred times as long.
    let mark = text.utf8.firstIndex(of: UInt8(ascii: "?"))
    let path = text[..<(mark ?? text.endIndex)]
    let query = mark.map { text[text.utf8.index(after: $0)...] }
    if path.isEmpty {
      return HTTPURL(origin: origin, target: self.path + Self.suffix(query ?? self.query))
    }
    let merged = path.hasPrefix("/") ? path : self.path.prefix(through: lastSlash) + path
    return HTTPURL(origin: origin, target: Self.removingDots(merged) + Self.suffix(query))
  }

  /// The index of the last slash of the path.
  private var lastSlash: String.Index { path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex }

  /// Returns a query with its "?"; an empty string for `nil`.
  private static func suffix(_ query: Substring?) -> String { query.map { "?" + $0 } ?? "" }

  /// Whether a reference begins with a scheme (RFC 3986, section 3.1).
  private static func hasScheme(_ reference: String) -> Bool {
    guard let first = reference.first, first.isLetter else { return false }
    let scheme = reference.prefix { $0.isLetter || $0.isNumber || "+-.".contains($0) }
    return reference[scheme.endIndex...].first == ":"
  }

  /// Removes the segments "." and ".." of a path, and the segment before each ".." (RFC 3986, section 5.2.4).
  private static func removingDots(_ path: Substring) -> String {
    var kept: [UInt8] = []
    /// For each segment in `kept`, the offset of the slash before the segment.
    var starts: [Int] = []
    var rest = path.utf8.dropFirst()
    while true {
      let segment = rest.prefix { $0 != UInt8(ascii: "/") }
      let isDot = segment.elementsEqual(".".utf8)
      let isDotDot = segment.elementsEqual("..".utf8)
      let isLast = segment.endIndex == rest.endIndex
      if isDotDot, let start = starts.popLast() { kept.removeSubrange(start...) }
      // A path that ends in a dot segment names a directory, so it keeps its final slash.
      if !isDot && !isDotDot || isLast {
        starts.append(kept.count)
        kept.append(UInt8(ascii: "/"))
        if !isDot && !isDotDot { kept += segment }
      }
      if isLast { return String(decoding: kept, as: UTF8.self) }
      rest = rest[segment.endIndex...].dropFirst()
    }
  }
}
