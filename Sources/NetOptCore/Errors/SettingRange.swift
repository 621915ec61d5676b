/// The range of values allowed for a setting. netopt checks settings when the client is created, because an
/// invalid value would later cause a hang or a trap, far from the code that set it.
package struct SettingRange<Value: Comparable & Sendable>: Sendable {
  private let values: ClosedRange<Value>
  /// The range as error messages show it.
  package let words: String

  /// Creates a range.
  ///
  /// - Parameter words: the range as error messages show it, such as "1 ms to 60 s". Default: its bounds.
  package init(_ values: ClosedRange<Value>, _ words: String? = nil) {
    self.values = values
    self.words = words ?? "\(values.lowerBound) to \(values.upperBound)"
  }

  /// Whether a value is in the range.
  package func contains(_ value: Value) -> Bool { values.contains(value) }

  /// Checks a value against the range.
  ///
  /// - Parameters:
  ///   - name: the name of the setting in the public API, such as `probing.budget`.
  ///   - phase: the phase of the error.
  /// - Throws: `invalidConfiguration` with the setting, its value and the range.
  package func check(
    _ value: Value, _ name: String, in phase: NetOptError.Phase = .connect
  ) throws(NetOptError) {
    if values.contains(value) { return }
    throw NetOptError(.invalidConfiguration, phase: phase, "\(name) is \(value); allowed: \(words)")
  }
}
