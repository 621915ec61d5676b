import NetOptTestSupport
/// The error for a promise that a transport broke.
package struct ConformanceFailure: Error, Sendable, CustomStringConvertible {
  /// The expected and the observed behaviour.
  package let description: String

  init(_ description: String) { self.description = description }
}

/// Throws unless the condition holds.
func require(_ condition: Bool, _ description: @autoclosure () -> String) throws(ConformanceFailure) {
  if !condition { throw ConformanceFailure(description()) }
}

/// Throws unless the values are equal.
func require<Value: Equatable>(
  _ seen: Value, equals expected: Value, _ what: @autoclosure () -> String
) throws(ConformanceFailure) {
  if seen != expected { throw ConformanceFailure("\(what()) is \(seen), not \(expected)") }
}
