import NetOptCore

/// The planner's knowledge of one endpoint: how fast it is, and whether it works.
struct EndpointHealth: Sendable {
  /// The time that a failure adds to the score for a while: the default connect timeout. The time that the
  /// failure itself took does not matter: an endpoint that refuses connections at once must not look fast.
  static let penalty = RequestOptions().connectTimeout
  /// The maximum number of failures whose penalties add up.
  private static let mostPenalties: Int64 = 10
  /// The number of late responses in a row that make an endpoint slow. One or two may belong to requests that
  /// take long at every endpoint.
  private static let slowInARow: UInt8 = 3
  /// How often the planner reviews the `slowness` of a slow endpoint when no responses come.
  private static let slownessReview = Duration.seconds(5)

  /// The time from the start of a connection attempt until a request can be sent: the TCP handshake and, for
  /// `https`, the TLS handshake. `nil` without a measurement.
  private(set) var ready: RoundTripEstimate?
  /// The round-trip time, from TCP handshakes and ICMP echo requests. `nil` without a measurement.
  private(set) var roundTrip: RoundTripEstimate?
  /// The shortest measured round trip in nanoseconds: a TCP handshake or an ICMP echo request. No exchange
  /// with the endpoint takes less.
  private(set) var leastRoundTrip: Int64?
  /// When `roundTrip` was last measured.
  private var lastConnect: MonotonicInstant?
  /// When `ready` was last measured.
  private var lastReady: MonotonicInstant?
  /// The last failure. A success does not clear it.
  private(set) var lastFailure: LegFailure?
  /// When the last failure occurred.
  private(set) var lastFailed: MonotonicInstant?
  /// When the endpoint was last seen to work; the earliest moment if never.
  private var lastSucceeded = MonotonicInstant(nanoseconds: .min)
  private(set) var circuit = Circuit()
  /// The quarantine of an endpoint whose certificate was wrong when it was last checked; otherwise `nil`.
  private(set) var quarantine: Quarantine?
  /// The failures that add to the score until `penalisedUntil`, counted in halves: 2 for a whole failure.
  private var penalties: Int64 = 0
  /// When the penalties end or ended; `nil` when there was no penalty since the last success.
  private var penalisedUntil: MonotonicInstant?
  /// The response time: from the last byte of a request to the first byte of its response, less a round trip.
  private var firstByte = PeakEstimate()
  /// The number of late responses in a row, at most `slowInARow`. `UsualTime.bound` tells which are late.
  private var lateAnswers: UInt8 = 0
  /// The part of the score for responses that begin later than usual, in nanoseconds: the part of `firstByte`
  /// beyond `UsualTime.bound`. 0 for an endpoint that is not slow.
  private(set) var slowness: Int64 = 0
  /// When `slowness` is reviewed next, even without a response; `nil` while `slowness` is 0.
  private var slownessDue: MonotonicInstant?
  /// The evidence of silence; `nil` unless the planner suspects the endpoint or has found it silent.
  var silence: Silence?
  /// Makes the planner wait longer before it suspects the endpoint again after wrong suspicions.
  var suspicionBackoff = SuspicionBackoff()
  /// When the endpoint last responded with 502, 503 or 504; the earliest moment if never.
  private var lastRefusal = MonotonicInstant(nanoseconds: .min)
  /// The state just before a failure at the moment `since`. `undoFailures(since:)` restores it, and thus
  /// undoes that failure and all later ones. `until` is `penalisedUntil`.
  private var savedState:
    (since: MonotonicInstant, circuit: Circuit, penalties: Int64, until: MonotonicInstant?)?

  // MARK: State

  /// The time until a request can be sent. Without a measured TLS handshake, the estimate comes from TCP
  /// handshakes: TLS 1.3 takes one more round trip.
  func readiness(secure: Bool) -> RoundTripEstimate? { ready ?? roundTrip?.scaled(by: secure ? 2 : 1) }

  /// The time that recent failures add to the score; `nil` without recent failures.
  func penalty(at now: MonotonicInstant) -> Duration? {
    guard let penalisedUntil, now < penalisedUntil else { return nil }
    return Self.penalty * Double(penalties) / 2
  }

  /// The time by which plans rank the endpoint, the lowest first. It is the sum of the smoothed time until a
  /// connection to the endpoint is ready (`readiness`), the time by which its responses begin later than
  /// usual for the origin (`slowness`), and the penalties for recent failures. `nil` without measurements and
  /// penalties.
  func score(secure: Bool, at now: MonotonicInstant) -> Duration? {
    let time = readiness(secure: secure).map { $0.smoothed + .nanoseconds(slowness) }
    guard let penalty = penalty(at: now) else { return time }
    return (time ?? .zero) + penalty
  }

  /// The score in nanoseconds of an endpoint for which `isHealthy` is true.
  func healthyScore(secure: Bool) -> Int64? {
    readiness(secure: secure).map { $0.smoothedNanoseconds + slowness }
  }

  /// The state of the endpoint. It decides whether requests use the endpoint.
  ///
  /// - Parameter unverified: whether the request accepts a wrong certificate.
  func state(at now: MonotonicInstant, unverified: Bool = false) -> CircuitState {
    let state = circuit.state(at: now)
    guard let quarantine, !unverified else { return state }
    return state == .open || now < quarantine.requestsMayCheckAt || isAttemptUnderWay(at: now)
      ? .quarantined : .halfOpen
  }

  /// Whether the endpoint's certificate was wrong when it was last checked.
  var isQuarantined: Bool { quarantine != nil }

  /// When a probe is to check the certificate of an endpoint in quarantine; `nil` when the endpoint is not in
  /// quarantine. While an attempt is under way, this is the moment at which the attempt ends at the latest.
  /// Otherwise it is the moment at which the check is due, or the end of the circuit breaker's open time if
  /// that is later.
  func certificateCheck(at now: MonotonicInstant) -> MonotonicInstant? {
    guard let quarantine else { return nil }
    return circuit.attemptEnds(at: now) ?? max(quarantine.due, circuit.openUntil(at: now) ?? quarantine.due)
  }

  /// Whether the one attempt of the half-open state, or a certificate check, is under way.
  func isAttemptUnderWay(at now: MonotonicInstant) -> Bool { circuit.isAttemptUnderWay(at: now) }

  /// Whether only a response shows that the endpoint works again after its last failure. Otherwise a ready
  /// connection is enough.
  var needsAnswer: Bool { circuit.lastFault != .unreachable }

  /// Whether the endpoint asked not to be used, and the time is not over.
  func isResting(at now: MonotonicInstant) -> Bool { circuit.rest(at: now) != nil }

  /// The kind of the last failure.
  var lastFault: Circuit.Fault { circuit.lastFault }

  /// Whether the endpoint was seen to work after a moment. If so, the failure of an attempt that began at
  /// this moment is outdated.
  func hasWorked(since moment: MonotonicInstant) -> Bool { lastSucceeded > moment }

  /// When the last response of the endpoint began; the earliest moment if none ever did.
  var lastAnswered: MonotonicInstant { max(firstByte.last ?? lastRefusal, lastRefusal) }

  /// Whether there was no failure since the last success, and there is no quarantine and no suspicion.
  /// Another success without new times then leaves the order as it is.
  var isHealthy: Bool {
    circuit.hasNoFailures && penalisedUntil == nil && quarantine == nil && silence == nil
  }

  /// When the endpoint's state or score next changes because time passes; `nil` when only events change them.
  func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
    if isHealthy { return slownessDue }
    let next = circuit.nextChange(after: now).earlier(penalisedUntil, after: now)
    return next.earlier(quarantine?.requestsMayCheckAt, after: now).earlier(slownessDue, after: now)
  }

  // MARK: Events

  /// Records that a connection was ready. This does not end a quarantine, because the connection may not have
  /// verified the certificate.
  ///
  /// - Parameters:
  ///   - connect: the time of the TCP handshake, when it was measured.
  ///   - ready: the time until a request could be sent, when it was measured.
  ///   - answered: whether a response came as well. After failures of the service, a connection alone is no
  ///     success.
  /// - Returns: whether anything has changed.
  mutating func succeeded(
    connect: Duration?, ready: Duration?, answered: Bool = true, at now: MonotonicInstant
  ) -> Bool {
    if connect != nil || ready != nil { measured(connect: connect, ready: ready, at: now) }
    let isMeasured = connect != nil || ready != nil
    if !answered && needsAnswer { return isMeasured }
    let wasSuspected = answered && recordAnswerDuringSilence(at: now)
    let hasChanged = isMeasured || !circuit.hasNoFailures || penalisedUntil != nil || wasSuspected
    circuit.succeeded(at: now)
    lastSucceeded = now
    penalisedUntil = nil
    savedState = nil
    return hasChanged
  }

  /// Records the times of a new connection or of an ICMP echo request. They do not show whether requests
  /// succeed.
  ///
  /// - Parameters:
  ///   - connect: the duration of the TCP handshake, or the round-trip time of the echo request.
  ///   - ready: the time until a request could be sent.
  mutating func measured(connect: Duration?, ready: Duration? = nil, at now: MonotonicInstant) {
    if let connect {
      roundTrip.add(connect, age: lastConnect.map { now - $0 } ?? .zero)
      leastRoundTrip = min(RoundTripEstimate.clamped(connect.nanoseconds), leastRoundTrip ?? .max)
      lastConnect = now
    }
    if let ready {
      self.ready.add(ready, age: lastReady.map { now - $0 } ?? .zero)
      lastReady = now
    }
  }

  /// Records that a response began.
  ///
  /// - Parameters:
  ///   - wait: the time from the last byte of the request to the first byte of the response, in nanoseconds.
  ///   - index: the index of this endpoint in the list.
  ///   - usual: the usual response time of the origin. This response becomes a sample of it.
  /// - Returns: whether the score has changed so much that the endpoint must be ranked again.
  mutating func answered(after wait: Int64, of index: Int, usual: inout UsualTime, at now: MonotonicInstant)
    -> Bool
  {
    let time = max(0, RoundTripEstimate.clamped(wait) - (roundTrip?.smoothedNanoseconds ?? 0))
    let bound = usual.bound ?? .max
    usual.add(time, of: index, at: now)
    firstByte.add(time, at: now)
    lateAnswers = time > bound ? min(lateAnswers + 1, Self.slowInARow) : 0
    // The usual case: the endpoint was not slow, and is not slow now.
    if slowness == 0, lateAnswers < Self.slowInARow { return false }
    return updateSlowness(against: bound, at: now)
  }

  /// Updates `slowness` after a response, or after time has passed. `bound` is `UsualTime.bound`.
  ///
  /// - Returns: whether `slowness` has changed so much that the endpoint must be ranked again.
  mutating func updateSlowness(against bound: Int64, at now: MonotonicInstant) -> Bool {
    let excess = max(0, firstByte.value(at: now) - bound)
    // A change of less than a tenth does not justify a new order.
    guard excess == 0 || abs(excess - slowness) > slowness / 10 else { return false }
    slowness = excess < 1_000_000 ? 0 : excess
    slownessDue = slowness > 0 ? now + Self.slownessReview : nil
    return true
  }

  /// Whether the review of the endpoint's slowness is due.
  func isSlownessDue(at now: MonotonicInstant) -> Bool { slownessDue.map { $0 <= now } ?? false }

  /// Postpones the review of the endpoint's slowness.
  mutating func postponeSlownessReview(at now: MonotonicInstant) {
    if slownessDue != nil { slownessDue = now + Self.slownessReview }
  }

  /// Records that a new connection presented the host's certificate and verified it.
  ///
  /// - Returns: whether the endpoint was in quarantine.
  mutating func verified() -> Bool {
    defer { quarantine = nil }
    return quarantine != nil
  }

  /// Adopts the estimates of an earlier run, unless the endpoint has estimates or failures already.
  ///
  /// - Parameter measured: when the estimates were saved. This may be before this process began.
  /// - Returns: whether the endpoint adopted the estimates.
  mutating func adopt(
    ready: RoundTripEstimate?, roundTrip: RoundTripEstimate?, measured: MonotonicInstant
  ) -> Bool {
    guard self.ready == nil, self.roundTrip == nil, isHealthy, ready != nil || roundTrip != nil else {
      return false
    }
    self.ready = ready
    self.roundTrip = roundTrip
    // Because of their age, these estimates weigh little beside new samples.
    lastReady = ready.map { _ in measured }
    lastConnect = roundTrip.map { _ in measured }
    return true
  }

  /// Records a failed connection.
  ///
  /// - Parameters:
  ///   - fault: the kind of failure, when the endpoint is to blame.
  ///   - begun: when the attempt began; `nil` for a probe.
  ///   - pace: how soon a wrong certificate is checked again.
  /// - Returns: whether anything has changed.
  mutating func failed(
    _ failure: LegFailure, as fault: Circuit.Fault = .unreachable,
    from begun: MonotonicInstant? = nil,
    pace: Quarantine.Pace = Quarantine.Pace(), at now: MonotonicInstant, using random: inout SplitMix64
  ) -> Bool {
    let cause = FailureCause(failure.kind)
    if cause == .unattributed { return begun == nil && giveBack(at: now, byProbe: true) }
    if cause == .service {
      serviceFailed(
        failure.message, as: .useless, rest: nil, byProbe: begun == nil, at: now, using: &random)
      return true
    }
    (lastFailure, lastFailed) = (failure, now)
    if quarantine?.failedAgain(failure, from: begun, at: now, using: &random) ?? false {
      _ = circuit.giveBack(byProbe: begun == nil)
    }
    if cause == .certificate {
      // A wrong certificate does not change the score: requests without verification may use the endpoint.
      if quarantine == nil {
        quarantine = Quarantine(failure, pace: pace, at: now, using: &random)
        circuit.endAttempt()
      }
      return true
    }
    saveState(at: now)
    if cause == .endpoint { circuit.failed(fault, byProbe: begun == nil, at: now, using: &random) }
    penalise(failure, halves: 2, at: now)
    return true
  }

  /// Records a failure of the service behind the endpoint.
  ///
  /// - Parameters:
  ///   - reason: the failure in words for users.
  ///   - fault: the kind of failure, which tells whether the next request may succeed.
  ///   - rest: how long the endpoint asked not to be used.
  ///   - isAnswer: whether a response of the endpoint reported the failure.
  ///   - byProbe: whether a probe found the failure.
  mutating func serviceFailed(
    _ reason: String, as fault: Circuit.Fault, rest: Duration?, isAnswer: Bool = false, byProbe: Bool = false,
    at now: MonotonicInstant,
    using random: inout SplitMix64
  ) {
    if isAnswer {
      lastRefusal = now
      _ = recordAnswerDuringSilence(at: now)
    }
    saveState(at: now)
    circuit.failed(fault, byProbe: byProbe, at: now, isHalf: true, using: &random)
    if let rest, rest > .zero { circuit.rest(for: rest, at: now) }
    penalise(LegFailure(.other, reason), halves: 1, at: now)
  }

  /// Records that the endpoint went silent. Its circuit breaker opens at once, however few failures there
  /// were.
  mutating func wentSilent(
    _ silence: Silence, _ failure: LegFailure, at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    let isNew = self.silence?.isCertain != true
    self.silence = silence
    guard isNew else { return }
    saveState(at: now)
    // When connections work and requests get no response, a new connection does not show that a request would
    // get one.
    let fault = silence.verdict == .dead ? Circuit.Fault.unreachable : .useless
    circuit.failed(fault, at: now, opens: true, using: &random)
    penalise(failure, halves: 2, at: now)
  }

  /// Records whether a new connection to the endpoint worked. Without a suspicion, nothing changes.
  mutating func triedConnection(works: Bool, at now: MonotonicInstant) {
    guard let silence else { return }
    if works, silence.verdict == .dead {
      // The endpoint works again. The requests that still wait there were sent before, so they are no
      // evidence.
      suspicionBackoff.restartEvidence(at: now)
      self.silence = nil
    } else {
      self.silence?.connection = works ? .works : .fails
    }
  }

  /// Undoes the effect of the failures since a moment: this machine's network caused them.
  ///
  /// - Returns: whether there was anything to undo.
  mutating func undoFailures(since moment: MonotonicInstant) -> Bool {
    guard let savedState, savedState.since >= moment else { return false }
    (circuit, penalties, penalisedUntil) = (savedState.circuit, savedState.penalties, savedState.until)
    // The attempt that was under way at that time is over.
    circuit.endAttempt()
    self.savedState = nil
    return true
  }

  /// Notes that a request or a probe makes the one attempt of the half-open state, or the certificate check.
  mutating func take(at now: MonotonicInstant, byProbe: Bool = false) {
    circuit.take(at: now, byProbe: byProbe)
  }

  /// Ends the attempt or certificate check without a result: it was not made, or it showed nothing.
  ///
  /// - Returns: whether there was such an attempt.
  mutating func giveBack(at now: MonotonicInstant, byProbe: Bool = false) -> Bool {
    guard circuit.giveBack(byProbe: byProbe) else { return false }
    quarantine?.wasGivenUp(at: now)
    return true
  }

  /// Stores the state before a failure in `savedState`. Keeps a stored state of the last 60 s (`undoWindow`).
  private mutating func saveState(at now: MonotonicInstant) {
    if let savedState, now < savedState.since + LocalNetwork.undoWindow { return }
    savedState = (now, circuit, penalties, penalisedUntil)
  }

  /// Adds a penalty to the score. `halves` is 2 for a whole penalty and 1 for half a penalty.
  private mutating func penalise(_ failure: LegFailure, halves: Int64, at now: MonotonicInstant) {
    let isPenalised = penalisedUntil.map { now < $0 } ?? false
    penalties = isPenalised ? min(penalties + halves, 2 * Self.mostPenalties) : halves
    lastFailure = failure
    lastFailed = now
    // The penalty ends when the circuit breaker becomes half-open, so that speed alone ranks a half-open
    // endpoint.
    penalisedUntil = circuit.openUntil(at: now) ?? now + Circuit.shortest
  }
}
