import NetOptCore

/// What the text report is set with: columns, and texts that come from elsewhere.
package enum TextLayout {
  /// The width of the report.
  package static let width = 80

  /// The text with blanks behind it.
  static func left(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  /// The text with blanks in front of it.
  package static func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  /// Two texts at the ends of a line, or on two lines when one is too short for them.
  static func ends(_ left: String, _ right: String) -> [String] {
    let gap = width - left.count - right.count
    if gap >= 3 { return [left + String(repeating: " ", count: gap) + right] }
    return [cut(left, to: width), Self.right(right, width)]
  }

  /// The text, cut to so many characters and then ended in "...".
  package static func cut(_ text: String, to width: Int) -> String {
    text.count <= width ? text : String((text.prefix(max(0, width - 3)) + "...").prefix(max(0, width)))
  }

  /// A name and what stands beside it. A name that is too long for its column has a line of its own: cut, two addresses could look
  /// alike.
  static func row(_ name: String, _ width: Int, _ cells: String) -> [String] {
    name.count <= width ? [left(name, width) + cells] : [cut(name, to: Self.width), left("", width) + cells]
  }

  /// The text with a replacement for everything that a terminal would act upon: names in certificates and messages of
  /// servers end up here. That is more than control characters: what turns the direction of writing makes a name look like another
  /// one.
  package static func printable(_ text: String, by replacement: Unicode.Scalar = "\u{fffd}") -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { $0.steersTerminal ? replacement : $0 }))
  }

  /// A word in front and a text beside it, which stays beside it when it takes more than a line.
  static func hanging(_ word: String, _ text: String) -> [String] {
    let margin = String(repeating: " ", count: word.count)
    return wrapped(text, at: width - word.count).enumerated().map {
      ($0.offset == 0 ? word : margin) + $0.element
    }
  }

  /// A text broken at its spaces, shortened to so many lines. Repeated spaces are not kept.
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
