import CCrypto
package import NetOptCore

/// Why libcrypto did not do what it was asked for. The message never has key material in it: it is made of the
/// operation's name and of libcrypto's own text.
package struct CryptoError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What was asked for, as a message names it: `the SHA-256 digest`.
  package let operation: String
  /// libcrypto's code (ERR_get_error(3)), or 0 when it gave none.
  package let code: UInt
  /// libcrypto's text for the code, or what is wrong with the arguments.
  package let reason: String

  /// Makes an error of a fault that is found before libcrypto is asked.
  package init(_ operation: String, _ reason: String) {
    self.operation = operation
    code = 0
    self.reason = reason
  }

  /// Makes an error of what libcrypto has noted on this thread, and empties the queue of its notes: what is left there
  /// would be taken for their own by libcurl's TLS connections.
  init(failed operation: String) {
    self.operation = operation
    code = ERR_get_error()
    reason = ERR_reason_error_string(code).map { String(cString: $0) } ?? "no reason was given"
    ERR_clear_error()
  }

  /// `the SHA-256 digest failed: unsupported`.
  package var description: String { "\(operation) failed: \(reason)" }

  /// The error for those who use netopt.
  ///
  /// - Parameter phase: the part of a call in which it happened.
  package func netOptError(in phase: NetOptError.Phase) -> NetOptError {
    NetOptError(
      .libraryFailed, phase: phase, description,
      underlying: NetOptError.Underlying(.openssl, code: Int32(truncatingIfNeeded: code), text: reason))
  }
}
