import NetOptCore

extension EndpointHealth {
  /// Whether the planner suspects the endpoint of being silent, or has found that the endpoint is silent.
  var isSuspected: Bool { silence != nil }

  /// Begins a suspicion that the endpoint is silent: requests wait for its responses longer than usual.
  mutating func suspect(_ silence: Silence) { self.silence = silence }

  /// Ends a suspicion of silence, or the finding that the endpoint is silent.
  ///
  /// - Returns: whether the endpoint was suspected, or found to be silent.
  mutating func clearSilence() -> Bool {
    defer { silence = nil }
    return silence != nil
  }

  /// Records a response of the endpoint. The response ends the suspicion that the endpoint is silent, or the
  /// finding that it is. A suspicion that ends in this way counts as wrong.
  ///
  /// - Returns: whether the endpoint was suspected, or found to be silent.
  mutating func recordAnswerDuringSilence(at now: MonotonicInstant) -> Bool {
    guard let silence else { return false }
    if !silence.isCertain { suspicionBackoff.recordFalseSuspicion(at: now) }
    return clearSilence()
  }

  /// Ends a suspicion whose time has passed without enough evidence of silence. The planner now assumes that
  /// the waiting requests only take long.
  ///
  /// - Parameter isConclusive: whether the suspicion counts as wrong, so that the planner waits longer before
  ///   it suspects the endpoint again. False for an endpoint whose circuit breaker was not closed: the
  ///   endpoint failed before, so the suspicion may have been right.
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
