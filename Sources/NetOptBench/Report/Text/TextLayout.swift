import NetOptCore

/// Functions for the layout of text reports: columns, line breaks, and text from untrusted sources.
package enum TextLayout {
  /// The width of the report in characters.
  package static let width = 80

  /// Pads a text with spaces on the right to `width` characters. Does not cut a longer text.
  static func left(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  /// Pads a text with spaces on the left to `width` characters. Does not cut a longer text.
  package static func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  /// A line with one text at its left end and one at its right end. Two lines when the texts do not fit on
  /// one.
  static func ends(_ left: String, _ right: String) -> [String] {
    let gap = width - left.count - right.count
    if gap >= 3 { return [left + String(repeating: " ", count: gap) + right] }
    return [cut(left, to: width), Self.right(right, width)]
  }

  /// Cuts a text to `width` characters; a cut text ends in "...".
  package static func cut(_ text: String, to width: Int) -> String {
    text.count <= width ? text : String((text.prefix(max(0, width - 3)) + "...").prefix(max(0, width)))
  }

  /// A row of a table: a name, then its cells. A name that is too long for its column gets a line of its own
  /// above the cells. It is not cut to the width of the column, because two cut addresses could look alike.
  ///
  /// - Parameter width: the width of the name's column, in characters.
  static func row(_ name: String, _ width: Int, _ cells: String) -> [String] {
    name.count <= width ? [left(name, width) + cells] : [cut(name, to: Self.width), left("", width) + cells]
  }

  /// Replaces every character that a terminal would act on, because reports contain names from certificates
  /// and messages from servers. These are the control characters, and also invisible characters that change
  /// how others look. For example, a change of the writing direction can make a name look like another name.
  package static func printable(_ text: String, by replacement: Unicode.Scalar = "\u{fffd}") -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { $0.steersTerminal ? replacement : $0 }))
  }

  /// A word, followed by a text that is wrapped at the width of the report. All further lines are indented to
  /// where the text begins.
  static func hanging(_ word: String, _ text: String) -> [String] {
    let margin = String(repeating: " ", count: word.count)
    return wrapped(text, at: width - word.count).enumerated().map {
      ($0.offset == 0 ? word : margin) + $0.element
    }
  }

  /// Wraps a text at its spaces. Repeated spaces become one.
  ///
  /// - Parameters:
  ///   - width: the maximum width of a line, in characters.
  ///   - limit: the maximum number of lines. The last line is cut when the text is longer.
  static func wrapped(_ text: String, at width: Int, lines limit: Int = .max) -> [String] {
    var lines: [String] = []
    for word in text.split(separator: " ") {
      if let last = lines.last, last.count + 1 + word.count <= width {
        lines[lines.count - 1] = last + " " + word
      } else {
        if lines.count == limit {
          lines[limit - 1] = cut(lines[limit - 1] + " " + word, to: width)
          break
        }
        lines.append(cut(String(word), to: width))
      }
    }
    return lines
  }
}
