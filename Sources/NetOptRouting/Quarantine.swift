import NetOptCore

/// Keeps an endpoint out because of its certificate.
struct Quarantine: Hashable, Sendable {
  /// How long an endpoint is kept out. Then one attempt is let through, which verifies the certificate again before
  /// a byte of a request is sent.
  static let length = Duration.seconds(600)

  /// What was wrong, for people.
  let reason: String
  /// What kind of failure it was.
  let kind: LegFailure.Kind
  /// When it ends.
  let until: MonotonicInstant

  /// Begins a quarantine because of a failure that is to be blamed on the certificate.
  init(_ kind: LegFailure.Kind, of host: String, at now: MonotonicInstant) {
    reason = Self.reason(kind, host)
    self.kind = kind
    until = now + Self.length
  }

  /// The most names of a certificate that are repeated.
  private static let shownNames = 4

  private static func reason(_ kind: LegFailure.Kind, _ host: String) -> String {
    switch kind {
    case .certificateName(let presented):
      let names = presented.prefix(shownNames).map { $0.printable(253) }.joined(separator: ", ")
      let more = presented.count > shownNames ? " and \(presented.count - shownNames) more" : ""
      return "its certificate is for \(names.isEmpty ? "other names" : names + more), not for \(host)"
    case .certificateExpired: return "its certificate for \(host) has expired or is not valid yet"
    default: return "its certificate for \(host) is not signed by a trusted authority"
    }
  }
}
