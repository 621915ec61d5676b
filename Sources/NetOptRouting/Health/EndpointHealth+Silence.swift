import NetOptCore

extension EndpointHealth {
  /// Whether the endpoint is suspected or found to be silent.
  var isSuspected: Bool { silence != nil }

  /// Begins a suspicion: requests wait for the endpoint's responses longer than usual.
  mutating func suspect(_ silence: Silence) { self.silence = silence }

  /// Ends the suspicion.
  ///
  /// - Returns: whether the endpoint was suspected.
  mutating func clearSilence() -> Bool {
    defer { silence = nil }
    return silence != nil
  }

  /// Records a response of the endpoint.
  ///
  /// - Returns: whether the endpoint was suspected, or found to be silent.
  mutating func answeredWhileSilent(at now: MonotonicInstant) -> Bool {
    guard let silence else { return false }
    if !silence.isCertain { suspicionBackoff.recordFalseSuspicion(at: now) }
    return clearSilence()
  }

  /// Ends a suspicion that found nothing: as far as the planner can tell, the waiting requests only take
  /// long.
  ///
  /// - Parameter isConclusive: whether the result says something about the endpoint. An endpoint that failed
  ///   before gives no conclusive result.
  mutating func suspicionExpired(isConclusive: Bool, at now: MonotonicInstant) -> Bool {
    if isConclusive {
      suspicionBackoff.recordFalseSuspicion(at: now)
    } else {
      suspicionBackoff.restartEvidence(at: now)
    }
    return clearSilence()
  }
}
