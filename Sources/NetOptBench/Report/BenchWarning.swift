/// A warning for the reader of a report.
package struct BenchWarning: Hashable, Sendable {
  /// A code that programs can rely on. It does not change between versions.
  package let code: String
  /// The warning in one sentence, for people.
  package let text: String

  /// Makes a warning.
  package init(_ code: String, _ text: String) {
    self.code = code
    self.text = text
  }
}
