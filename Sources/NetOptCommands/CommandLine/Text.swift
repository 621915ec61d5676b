import NetOptBench

/// Formats values for texts.
enum Text {
  /// Formats a duration: `12.3 ms`, `1.25 s`.
  static func time(_ duration: Duration) -> String {
    let nanoseconds = max(duration.nanoseconds, 0)
    if nanoseconds < 999_950_000 { return milliseconds(duration) + " ms" }
    let hundredths = nanoseconds / 10_000_000 + (nanoseconds % 10_000_000 >= 5_000_000 ? 1 : 0)
    let fraction = hundredths % 100
    return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction) s"
  }

  /// Formats a duration in milliseconds with one decimal and no unit: `12.3`.
  static func milliseconds(_ duration: Duration) -> String {
    let nanoseconds = max(duration.nanoseconds, 0)
    let tenths = nanoseconds / 100_000 + (nanoseconds % 100_000 >= 50_000 ? 1 : 0)
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// Formats a number with its noun: `1 endpoint`, `2 endpoints`.
  static func count(_ number: some BinaryInteger, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
  }

  /// Replaces the characters that a terminal acts upon by spaces. So text from a server cannot control the
  /// terminal.
  static func printable(_ text: String) -> String { TextLayout.printable(text, by: " ") }

  /// Pads a text with spaces on the right to a width, or cuts the text to the width with "..." at the end.
  static func left(_ text: String, _ width: Int) -> String {
    let text = cut(text, to: width)
    return text + spaces(width - text.count)
  }

  /// Pads a text with spaces on the left to a width.
  static func right(_ text: String, _ width: Int) -> String { TextLayout.right(text, width) }

  /// Cuts a text that is longer than a width. The cut text ends in "...".
  static func cut(_ text: String, to width: Int) -> String { TextLayout.cut(text, to: width) }

  /// Returns `count` spaces; none for a negative number.
  static func spaces(_ count: Int) -> String { String(repeating: " ", count: max(count, 0)) }

  /// Joins lines with line ends, and removes the spaces at the ends of the lines.
  static func lines(_ lines: [String]) -> String {
    lines.map { line in
      let end = line.lastIndex { $0 != " " }.map(line.index(after:)) ?? line.startIndex
      return line[..<end] + "\n"
    }.joined()
  }

  /// Breaks a text into lines at white space. A word that is longer than a line is on a line of its own.
  static func wrapped(_ text: String, at width: Int) -> [String] {
    var lines: [String] = []
    for word in text.split(whereSeparator: \.isWhitespace) {
      if let last = lines.last, last.count + 1 + word.count <= width {
        lines[lines.count - 1] = last + " " + word
      } else {
        lines.append(String(word))
      }
    }
    return lines
  }
}
