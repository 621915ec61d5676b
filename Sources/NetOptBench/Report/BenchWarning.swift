/// Something that the reader of a report has to know about it.
package struct BenchWarning: Hashable, Sendable {
  /// A stable name.
  package let code: String
  /// One sentence for people.
  package let text: String

  /// Makes a warning.
  package init(_ code: String, _ text: String) {
    self.code = code
    self.text = text
  }
}
