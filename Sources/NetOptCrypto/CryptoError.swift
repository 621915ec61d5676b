import CCrypto
package import NetOptCore

/// An error of libcrypto, or a fault of the arguments that is found before libcrypto is called. The message
/// never contains key material: it consists of the operation's name and the reason.
package struct CryptoError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The operation, as a message names it: `the SHA-256 digest`.
  package let operation: String
  /// libcrypto's error code (ERR_get_error(3)); 0 if libcrypto gave none or was not called.
  package let code: UInt
  /// libcrypto's text for the code, or a description of the fault of the arguments.
  package let reason: String

  /// Makes an error for a fault of the arguments that is found before libcrypto is called.
  package init(_ operation: String, _ reason: String) {
    self.operation = operation
    code = 0
    self.reason = reason
  }

  /// Makes an error from libcrypto's error queue of this thread, and empties the queue. libcurl's TLS
  /// connections on this thread would take errors that remain in the queue for their own.
  init(failed operation: String) {
    self.operation = operation
    code = ERR_get_error()
    reason = ERR_reason_error_string(code).map { String(cString: $0) } ?? "no reason was given"
    ERR_clear_error()
  }

  /// The message: `the SHA-256 digest failed: unsupported`.
  package var description: String { "\(operation) failed: \(reason)" }

  /// Returns the error that netopt's callers get.
  ///
  /// - Parameter phase: the part of a call in which the error happened.
  package func netOptError(in phase: NetOptError.Phase) -> NetOptError {
    NetOptError(
      .libraryFailed, phase: phase, description,
      underlying: NetOptError.Underlying(.openssl, code: Int32(truncatingIfNeeded: code), text: reason))
  }
}
