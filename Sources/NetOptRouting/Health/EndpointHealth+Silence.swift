import NetOptCore

extension EndpointHealth {
  /// Whether it may have stopped answering.
  var isSuspected: Bool { silence != nil }

  /// Requests wait for its answers longer than is usual.
  mutating func suspect(_ silence: Silence) { self.silence = silence }

  /// None do any more.
  ///
  /// - Returns: whether it was suspected.
  mutating func clearSilence() -> Bool {
    defer { silence = nil }
    return silence != nil
  }

  /// An answer came.
  ///
  /// - Returns: whether it was suspected, or found to be silent.
  mutating func answeredWhileSilent(at now: MonotonicInstant) -> Bool {
    guard let silence else { return false }
    if !silence.isCertain { patience.wasWrong(at: now) }
    return clearSilence()
  }

  /// The requests that wait take their time, as far as can be told.
  ///
  /// - Parameter isNews: whether that says something: not of an endpoint that failed before.
  mutating func wasSuspectedInVain(isNews: Bool, at now: MonotonicInstant) -> Bool {
    if isNews { patience.wasWrong(at: now) } else { patience.excuse(at: now) }
    return clearSilence()
  }
}
