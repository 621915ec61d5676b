/// Why a request cannot be signed or is not accepted. The detail never contains a secret.
package struct SigningFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// The stable code of the fault.
  package let reason: VerificationReport.Reason
  /// The fault in words: what is wrong, where, and how to correct it.
  package let detail: String

  /// Makes a fault.
  package init(_ reason: VerificationReport.Reason, _ detail: String) {
    self.reason = reason
    self.detail = detail
  }

  /// `reason: detail`.
  package var description: String { "\(reason.rawValue): \(detail)" }
}
