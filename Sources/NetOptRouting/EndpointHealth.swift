import NetOptCore

/// What is known of one endpoint: how fast it is, and whether it works.
struct EndpointHealth: Sendable {
  /// What a failure adds to the score for a while: as long as an attempt to connect may take. The time that the
  /// failure itself took is never a score: an endpoint that refuses at once must not look like a fast one.
  static let penalty = RequestOptions().connectTimeout
  /// The most failures that add up.
  private static let mostPenalties: Int64 = 10

  /// The time until a request can be sent: TCP, and TLS where there is any.
  private(set) var ready: RoundTripEstimate?
  /// The time of the TCP handshake.
  private(set) var roundTrip: RoundTripEstimate?
  /// What happened at the last failure; a success does not take it away.
  private(set) var lastFailure: LegFailure?
  /// When the last failure was.
  private(set) var lastFailed: MonotonicInstant?
  private var circuit = Circuit()
  private var quarantine: Quarantine?
  private var penalties: Int64 = 0
  private var penalisedUntil: MonotonicInstant?

  // MARK: What is known

  /// The time until a request can be sent. From TCP handshakes alone when no TLS handshake was measured: TLS 1.3
  /// takes one more round trip.
  func readiness(secure: Bool) -> RoundTripEstimate? { ready ?? roundTrip?.scaled(by: secure ? 2 : 1) }

  /// What the failures of late add to the score, or `nil` when there were none.
  func penalty(at now: MonotonicInstant) -> Duration? {
    guard let penalisedUntil, now < penalisedUntil else { return nil }
    return Self.penalty * Double(penalties)
  }

  /// Whether the endpoint is used.
  ///
  /// - Parameter unverified: for a request that does not ask whose the certificate is.
  func state(at now: MonotonicInstant, unverified: Bool = false) -> CircuitState {
    guard let quarantine, !unverified else { return circuit.state(at: now) }
    return now < quarantine.until ? .quarantined : .halfOpen
  }

  /// Whether the one attempt of the half-open state is under way.
  func isTried(at now: MonotonicInstant) -> Bool { circuit.isTried(at: now) }

  /// Why the endpoint is left out in this state, for people.
  func reason(of state: CircuitState, at now: MonotonicInstant) -> String {
    if state == .quarantined, let quarantine { return quarantine.reason }
    if state == .halfOpen { return "it failed before, and one attempt is under way" }
    let last = lastFailure.map { "; the last time: \($0.message)" } ?? ""
    return "it failed \(circuit.failures(at: now)) times in a row\(last)"
  }

  /// Whether nothing is held against the endpoint: a success then says nothing new.
  var isClear: Bool { circuit.isClear && penalisedUntil == nil && quarantine == nil }

  /// When the passing of time changes something next.
  func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
    if isClear { return nil }
    let moments = [circuit.nextChange(after: now), penalisedUntil, quarantine?.until]
    return moments.compactMap { $0 }.filter { $0 > now }.min()
  }

  // MARK: What happens

  /// A connection was ready.
  ///
  /// - Parameters:
  ///   - connect: the time of the TCP handshake, when it was measured.
  ///   - ready: the time until a request could be sent, when it was measured.
  /// - Returns: whether anything has changed.
  mutating func succeeded(connect: Duration?, ready: Duration?, at now: MonotonicInstant) -> Bool {
    // While a quarantine lasts only a request that does without verification gets here, which proves nothing.
    let isReleased = quarantine.map { now >= $0.until } ?? false
    let isNews = connect != nil || ready != nil || !circuit.isClear || penalisedUntil != nil || isReleased
    guard isNews else { return false }
    measured(connect: connect)
    if let ready { self.ready.add(ready) }
    circuit.succeeded()
    penalisedUntil = nil
    if isReleased { quarantine = nil }
    return true
  }

  /// A TCP handshake was done, which says nothing of what comes after it.
  mutating func measured(connect: Duration?) { if let connect { roundTrip.add(connect) } }

  /// The host's certificate was presented and verified.
  ///
  /// - Returns: whether the endpoint was in quarantine.
  mutating func verified() -> Bool {
    defer { quarantine = nil }
    return quarantine != nil
  }

  /// Takes over what an earlier run has learned, unless something is known already.
  ///
  /// - Returns: whether it was of use.
  mutating func adopt(ready: RoundTripEstimate?, roundTrip: RoundTripEstimate?) -> Bool {
    guard self.ready == nil, self.roundTrip == nil, isClear, ready != nil || roundTrip != nil else {
      return false
    }
    self.ready = ready
    self.roundTrip = roundTrip
    return true
  }

  /// A connection failed.
  ///
  /// - Parameter host: whose endpoint it is.
  /// - Returns: whether anything has changed.
  mutating func failed(
    _ failure: LegFailure, of host: String, at now: MonotonicInstant, using random: inout SplitMix64
  ) -> Bool {
    let blame = Blame(failure.kind)
    if blame == .nobody { return false }
    let isPenalised = penalisedUntil.map { now < $0 } ?? false
    penalties = isPenalised ? min(penalties + 1, Self.mostPenalties) : 1
    lastFailure = failure
    lastFailed = now
    switch blame {
    case .endpoint: circuit.failed(at: now, using: &random)
    case .certificate: quarantine = Quarantine(failure.kind, of: host, at: now)
    case .localNetwork, .nobody: break
    }
    // The penalty ends with the circuit, so that a half-open endpoint stands where its speed puts it.
    penalisedUntil = circuit.openUntil(at: now) ?? now + Circuit.shortest
    return true
  }

  /// Takes the one attempt of the half-open state.
  mutating func take(at now: MonotonicInstant) { circuit.take(at: now) }

  /// Gives the attempt back: it was not made, or showed nothing.
  ///
  /// - Returns: whether there was one.
  mutating func giveBack() -> Bool { circuit.giveBack() }
}
