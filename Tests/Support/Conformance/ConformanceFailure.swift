import NetOptTestSupport
/// The error of a check when the transport broke the promise that the check tests.
package struct ConformanceFailure: Error, Sendable, CustomStringConvertible {
  /// What the transport did wrong, in words.
  package let description: String

  init(_ description: String) { self.description = description }
}

/// Throws a `ConformanceFailure` with the description unless the condition holds.
func require(_ condition: Bool, _ description: @autoclosure () -> String) throws(ConformanceFailure) {
  if !condition { throw ConformanceFailure(description()) }
}

/// Throws a `ConformanceFailure` unless the values are equal. `what` names the value in the message.
func require<Value: Equatable>(
  _ seen: Value, equals expected: Value, _ what: @autoclosure () -> String
) throws(ConformanceFailure) {
  if seen != expected { throw ConformanceFailure("\(what()) is \(seen), not \(expected)") }
}
