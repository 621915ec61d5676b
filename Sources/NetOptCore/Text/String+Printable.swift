extension String {
  /// The text as a message may show it: on one line, without control and direction characters, at most `limit`
  /// characters of it. What comes from a list or a certificate must not drive the reader's terminal.
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
