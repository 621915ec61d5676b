/// The range of values allowed for a setting. Checking a setting early matters: an invalid value causes a
/// hang or a trap far from the place where it was set.
package struct SettingRange<Value: Comparable & Sendable>: Sendable {
  private let values: ClosedRange<Value>
  private let words: String

  /// - Parameter words: the range as messages show it. Default: its bounds.
  package init(_ values: ClosedRange<Value>, _ words: String? = nil) {
    self.values = values
    self.words = words ?? "\(values.lowerBound) to \(values.upperBound)"
  }

  /// Checks a value against the range.
  ///
  /// - Parameter name: the name of the setting in the public API.
  /// - Throws: `invalidConfiguration` with the setting, its value and the range.
  package func check(
    _ value: Value, _ name: String, in phase: NetOptError.Phase = .connect
  ) throws(NetOptError) {
    if values.contains(value) { return }
    throw NetOptError(.invalidConfiguration, phase: phase, "\(name) is \(value); allowed: \(words)")
  }
}
