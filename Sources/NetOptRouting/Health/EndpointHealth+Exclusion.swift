import NetOptCore

// Why and since when requests avoid an endpoint

extension EndpointHealth {
  /// When the endpoint, which worked until then, was first avoided: its circuit breaker opened, or its
  /// quarantine began. `nil` when neither holds.
  func avoidedSince(at now: MonotonicInstant) -> MonotonicInstant? {
    let opened = circuit.state(at: now) == .closed ? nil : circuit.openSince
    return [opened, quarantine?.begun].compactMap(\.self).min()
  }

  /// Why plans exclude the endpoint in this state.
  func exclusion(in state: CircuitState, at now: MonotonicInstant) -> Exclusion {
    if state == .quarantined, let quarantine {
      return .quarantine(quarantine.notice(isAttemptUnderWay(at: now) ? nil : certificateCheck(at: now)))
    }
    if state == .halfOpen { return .reason(.attemptUnderWay) }
    if let rest = circuit.rest(at: now) { return .reason(.resting(for: rest, last: lastFailure)) }
    let failures = circuit.failures(at: now)
    if failures >= Circuit.threshold { return .reason(.failures(inARow: failures, last: lastFailure)) }
    let recent = circuit.recentCounts
    return .reason(.failureRate(failed: recent.failures, attempts: recent.attempts, last: lastFailure))
  }
}
