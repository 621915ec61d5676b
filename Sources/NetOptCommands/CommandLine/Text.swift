import NetOptBench

/// How values look in texts for people.
enum Text {
  /// A duration as a person reads it: `12.3 ms`, `1.25 s`.
  static func time(_ duration: Duration) -> String {
    let nanoseconds = max(duration.nanoseconds, 0)
    if nanoseconds < 999_950_000 { return milliseconds(duration) + " ms" }
    let hundredths = nanoseconds / 10_000_000 + (nanoseconds % 10_000_000 >= 5_000_000 ? 1 : 0)
    let fraction = hundredths % 100
    return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction) s"
  }

  /// A duration in milliseconds with one decimal and no unit: `12.3`.
  static func milliseconds(_ duration: Duration) -> String {
    let nanoseconds = max(duration.nanoseconds, 0)
    let tenths = nanoseconds / 100_000 + (nanoseconds % 100_000 >= 50_000 ? 1 : 0)
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// A number and a noun: `1 endpoint`, `2 endpoints`.
  static func count(_ number: some BinaryInteger, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
  }

  /// The text with spaces for what a terminal would act upon: what a server sent must not steer the terminal that shows it.
  static func printable(_ text: String) -> String { TextLayout.printable(text, by: " ") }

  /// Fills up with spaces on the right, or cuts with "..." to a width.
  static func left(_ text: String, _ width: Int) -> String {
    let text = cut(text, to: width)
    return text + spaces(width - text.count)
  }

  /// Fills up with spaces on the left.
  static func right(_ text: String, _ width: Int) -> String { TextLayout.right(text, width) }

  /// Cuts a text that is longer than a width and ends it in "...".
  static func cut(_ text: String, to width: Int) -> String { TextLayout.cut(text, to: width) }

  /// So many spaces, none for a negative number.
  static func spaces(_ count: Int) -> String { String(repeating: " ", count: max(count, 0)) }

  /// The lines with no spaces at their ends.
  static func lines(_ lines: [String]) -> String {
    lines.map { line in
      let end = line.lastIndex { $0 != " " }.map(line.index(after:)) ?? line.startIndex
      return line[..<end] + "\n"
    }.joined()
  }

  /// Breaks a text into lines at its spaces. A word that is longer than a line stands on one of its own.
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
