import NetOptCore

/// Why a plan excludes an endpoint, as the planner keeps it. The reason that a caller gets is made when it asks, because the time until the next
/// check of a certificate depends on that moment.
enum Exclusion: Hashable, Sendable {
  /// The reason does not depend on the moment.
  case reason(ExclusionReason)
  /// The endpoint is in quarantine.
  case quarantine(Quarantine.Notice)

  /// The reason, at the moment for which it is asked.
  func reason(at now: MonotonicInstant) -> ExclusionReason {
    switch self {
    case .reason(let reason): reason
    case .quarantine(let notice): notice.reason(at: now)
    }
  }

  /// When the reason changes by itself.
  func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
    if case .quarantine(let notice) = self { notice.nextChange(after: now) } else { nil }
  }
}
