import NetOptCore

/// Why a plan excludes an endpoint, in the form that the planner keeps. The planner makes the reason for a
/// caller on request, because the time until the next certificate check depends on the moment of the request.
enum Exclusion: Hashable, Sendable {
  /// The reason does not depend on the moment.
  case reason(ExclusionReason)
  /// The endpoint is in quarantine.
  case quarantine(Quarantine.Notice)

  /// The reason, as of the moment of the call.
  func reason(at now: MonotonicInstant) -> ExclusionReason {
    switch self {
    case .reason(let reason): reason
    case .quarantine(let notice): notice.reason(at: now)
    }
  }

  /// When the reason next changes with the passing of time.
  func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
    if case .quarantine(let notice) = self { notice.nextChange(after: now) } else { nil }
  }
}
