/// A warning for the reader of a report.
package struct BenchWarning: Hashable, Sendable {
  /// A stable code for programs.
  package let code: String
  /// One sentence for people.
  package let text: String

  /// Makes a warning.
  package init(_ code: String, _ text: String) {
    self.code = code
    self.text = text
  }
}
