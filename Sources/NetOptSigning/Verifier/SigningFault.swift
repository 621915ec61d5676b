/// Why something could not be signed or is not accepted. The detail never has a secret in it.
package struct SigningFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// The stable code.
  package let reason: VerificationReport.Reason
  /// What is wrong, where, and what to do.
  package let detail: String

  /// Makes a fault.
  package init(_ reason: VerificationReport.Reason, _ detail: String) {
    self.reason = reason
    self.detail = detail
  }

  /// `reason: detail`.
  package var description: String { "\(reason.rawValue): \(detail)" }
}
