/// A text with a part that a program writes.
package enum MarkedText {
  package static let begin = "<!-- netopt-faults: begin -->"
  package static let end = "<!-- netopt-faults: end -->"

  /// The text with another part between its marks; `nil` when it has no marks, or has them in another order.
  package static func replacing(_ text: String, with part: String) -> String? {
    guard let first = text.firstRange(of: begin), let last = text.firstRange(of: end),
      first.upperBound <= last.lowerBound
    else { return nil }
    return text[..<first.upperBound] + "\n" + part + "\n" + text[last.lowerBound...]
  }
}
