/// The values that a setting may have. What a value outside would do, a hang or a trap, shows far from where it was set.
package struct SettingRange<Value: Comparable & Sendable>: Sendable {
  private let values: ClosedRange<Value>
  private let words: String

  /// - Parameter words: the range as messages say it; by default its bounds.
  package init(_ values: ClosedRange<Value>, _ words: String? = nil) {
    self.values = values
    self.words = words ?? "\(values.lowerBound) to \(values.upperBound)"
  }

  /// Holds a value against the range.
  ///
  /// - Parameter name: the setting, as the one who set it calls it.
  /// - Throws: `invalidConfiguration` with the setting, its value and the range.
  package func check(
    _ value: Value, _ name: String, in phase: NetOptError.Phase = .connect
  ) throws(NetOptError) {
    if values.contains(value) { return }
    throw NetOptError(.invalidConfiguration, phase: phase, "\(name) is \(value); it may be \(words)")
  }
}
