import NetOptCore

/// Why a plan excludes an endpoint, as the planner keeps it. `ExclusionReason` is the form for callers. The
/// planner makes that form only on request, because it contains the time until the next certificate check,
/// which depends on the moment of the request.
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

  /// When the reason next changes because time passes; `nil` when it does not.
  func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
    if case .quarantine(let notice) = self { notice.nextChange(after: now) } else { nil }
  }
}
