import NetOptBench

/// Formats values for the text output of the commands.
enum Text {
  /// Formats a duration: `12.3 ms`, or `1.25 s` from 999.95 ms on. A negative duration is `0.0 ms`.
  static func time(_ duration: Duration) -> String {
    let nanoseconds = max(duration.nanoseconds, 0)
    if nanoseconds < 999_950_000 { return milliseconds(duration) + " ms" }
    let hundredths = nanoseconds / 10_000_000 + (nanoseconds % 10_000_000 >= 5_000_000 ? 1 : 0)
    let fraction = hundredths % 100
    return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction) s"
  }

  /// Formats a duration in milliseconds with one decimal and no unit: `12.3`. A negative duration is `0.0`.
  static func milliseconds(_ duration: Duration) -> String {
    let nanoseconds = max(duration.nanoseconds, 0)
    let tenths = nanoseconds / 100_000 + (nanoseconds % 100_000 >= 50_000 ? 1 : 0)
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// Formats a number with its noun: `1 endpoint`, `2 endpoints`.
  static func count(_ number: some BinaryInteger, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
  }

  /// Replaces by a space each character that a terminal would act on, such as a control character or a
  /// character that changes the direction of writing. So text from a server cannot control the terminal.
  static func printable(_ text: String) -> String { TextLayout.printable(text, by: " ") }

  /// Returns a text of exactly `width` characters. Adds spaces on the right of a shorter text. Cuts a longer
  /// text, so that it ends in "...".
  static func left(_ text: String, _ width: Int) -> String {
    let text = cut(text, to: width)
    return text + spaces(width - text.count)
  }

  /// Adds spaces on the left of a text that is shorter than `width`. Returns a longer text unchanged.
  static func right(_ text: String, _ width: Int) -> String { TextLayout.right(text, width) }

  /// Cuts a text that is longer than `width` to `width` characters. The last three are then "...".
  static func cut(_ text: String, to width: Int) -> String { TextLayout.cut(text, to: width) }

  /// Returns `count` spaces; none for a negative number.
  static func spaces(_ count: Int) -> String { String(repeating: " ", count: max(count, 0)) }

  /// Returns the lines as one text. Removes the spaces at the end of each line and adds a line end to it.
  static func lines(_ lines: [String]) -> String {
    lines.map { line in
      let end = line.lastIndex { $0 != " " }.map(line.index(after:)) ?? line.startIndex
      return line[..<end] + "\n"
    }.joined()
  }

  /// Breaks a text at white space into lines of at most `width` characters. A longer word gets a whole line,
  /// which is then longer than `width`.
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
