import NetOptCore

/// Why plans exclude an endpoint, in the form that the planner keeps. `ExclusionReason` is the form for
/// callers. The planner makes an `ExclusionReason` only when a caller asks for it: it may contain the time
/// until the next certificate check, which depends on the moment of the call.
enum Exclusion: Hashable, Sendable {
  /// A reason that is the same at every moment.
  case reason(ExclusionReason)
  /// The endpoint is in quarantine. The reason contains the time until the next certificate check.
  case quarantine(Quarantine.Notice)

  /// The reason in the form for callers, at a moment.
  func reason(at now: MonotonicInstant) -> ExclusionReason {
    switch self {
    case .reason(let reason): reason
    case .quarantine(let notice): notice.reason(at: now)
    }
  }

  /// When the reason next changes because time passes; `nil` when time does not change it.
  func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
    if case .quarantine(let notice) = self { notice.nextChange(after: now) } else { nil }
  }
}
