import Glibc

/// A failure of the test kit: a program is missing or does not start, a port is in use, or a condition was
/// not met in time. The test that called the kit then fails.
public struct TestSupportError: Error, Sendable, CustomStringConvertible {
  /// The failure, and its remedy if there is one.
  public let description: String

  /// Creates an error.
  public init(_ description: String) { self.description = description }
}

/// Creates the error for a system call that has just failed.
///
/// - Parameters:
///   - what: what failed, in words.
///   - code: the error number of the system call.
package func systemError(_ what: String, code: Int32 = errno) -> TestSupportError {
  TestSupportError("\(what): \(String(cString: strerror(code)))")
}
