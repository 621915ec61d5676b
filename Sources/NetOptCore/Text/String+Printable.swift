extension String {
  /// Returns the text for a message: one line of at most `limit` Unicode scalars, with "…" after them if the
  /// text is longer. Replaces characters that control a terminal or the direction of writing by U+FFFD,
  /// because text from a list or a certificate must not control the reader's terminal.
  package func printable(_ limit: Int) -> String {
    if utf8.count <= limit, utf8.allSatisfy({ (0x20..<0x7f).contains($0) }) { return self }
    var shown = String.UnicodeScalarView()
    for (position, scalar) in unicodeScalars.enumerated() {
      if position == limit { return String(shown) + "…" }
      shown.append(scalar.steersTerminal ? "\u{fffd}" : scalar)
    }
    return String(shown)
  }
}
