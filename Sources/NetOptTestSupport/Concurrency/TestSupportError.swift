import Glibc

/// What kept a part of the test kit from doing its work: a program that is missing or does not start, a port that is
/// taken, a condition that was not met in time. It fails the test that waits.
public struct TestSupportError: Error, Sendable, CustomStringConvertible {
  /// What happened, and where there is something to do about it, what.
  public let description: String

  /// Makes an error.
  public init(_ description: String) { self.description = description }
}

/// Makes the error for a system call that has just failed.
package func systemError(_ what: String, code: Int32 = errno) -> TestSupportError {
  TestSupportError("\(what): \(String(cString: strerror(code)))")
}
