/// A text in which a program writes the part between two marks, and people write the rest.
package enum MarkedText {
  package static let begin = "<!-- netopt-faults: begin -->"
  package static let end = "<!-- netopt-faults: end -->"

  /// Replaces the part between the marks; returns `nil` when the marks are missing or in the wrong order.
  package static func replacing(_ text: String, with part: String) -> String? {
    guard let first = text.firstRange(of: begin), let last = text.firstRange(of: end),
      first.upperBound <= last.lowerBound
    else { return nil }
    return text[..<first.upperBound] + "\n" + part + "\n" + text[last.lowerBound...]
  }
}
