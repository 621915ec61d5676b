import NetOptCore

extension EndpointHealth {
  /// Whether the planner suspects the endpoint of being silent, or has found that it is.
  var isSuspected: Bool { silence != nil }

  /// Begins a suspicion: requests wait for the endpoint's responses longer than usual.
  mutating func suspect(_ silence: Silence) { self.silence = silence }

  /// Ends a suspicion of silence, or the finding that the endpoint is silent.
  ///
  /// - Returns: whether the endpoint was suspected, or found to be silent.
  mutating func clearSilence() -> Bool {
    defer { silence = nil }
    return silence != nil
  }

  /// Records a response of the endpoint. It ends a suspicion, which then was wrong, or the finding that the
  /// endpoint is silent.
  ///
  /// - Returns: whether the endpoint was suspected, or found to be silent.
  mutating func recordAnswerDuringSilence(at now: MonotonicInstant) -> Bool {
    guard let silence else { return false }
    if !silence.isCertain { suspicionBackoff.recordFalseSuspicion(at: now) }
    return clearSilence()
  }

  /// Ends a suspicion that found nothing: as far as the planner can tell, the waiting requests only take
  /// long.
  ///
  /// - Parameter isConclusive: whether the suspicion counts as wrong, so that the planner waits longer before
  ///   the next one. False for an endpoint whose circuit breaker was not closed: it failed before, so the
  ///   suspicion may have been right.
  /// - Returns: whether the endpoint was suspected.
  mutating func suspicionExpired(isConclusive: Bool, at now: MonotonicInstant) -> Bool {
    if isConclusive {
      suspicionBackoff.recordFalseSuspicion(at: now)
    } else {
      suspicionBackoff.restartEvidence(at: now)
    }
    return clearSilence()
  }
}
