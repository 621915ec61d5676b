import NetOptCore

/// What is known of one endpoint: how fast it is, and whether it works.
struct EndpointHealth: Sendable {
  /// What a failure adds to the score for a while: as long as an attempt to connect may take. The time that the
  /// failure itself took is never a score: an endpoint that refuses at once must not look like a fast one.
  static let penalty = RequestOptions().connectTimeout
  /// The most failures that add up.
  private static let mostPenalties: Int64 = 10
  /// So many answers in a row that are later than is usual make an endpoint slow. One or two may be requests that
  /// take long wherever they are answered.
  private static let slowInARow: UInt8 = 3
  /// How often the time that a slow endpoint takes longer is looked at again when no answers come.
  private static let slownessReview = Duration.seconds(5)

  /// The time until a request can be sent: TCP, and TLS where there is any.
  private(set) var ready: RoundTripEstimate?
  /// The time of the TCP handshake.
  private(set) var roundTrip: RoundTripEstimate?
  /// The shortest TCP handshake that was measured, in nanoseconds: what no exchange with it falls short of.
  private(set) var leastRoundTrip: Int64?
  /// When they were last measured.
  private var lastConnect: MonotonicInstant?
  private var lastReady: MonotonicInstant?
  /// What happened at the last failure; a success does not take it away.
  private(set) var lastFailure: LegFailure?
  /// When the last failure was.
  private(set) var lastFailed: MonotonicInstant?
  /// When it was last seen to work.
  private var lastSucceeded = MonotonicInstant(nanoseconds: .min)
  private var circuit = Circuit()
  private var quarantine: Quarantine?
  /// In halves.
  private var penalties: Int64 = 0
  private var penalisedUntil: MonotonicInstant?
  /// From the request's last byte to the answer's first, less a round trip.
  private var firstByte = PeakEstimate()
  private var lateAnswers: UInt8 = 0
  /// By how much its answers begin later than is usual, in nanoseconds, as the score has it.
  private(set) var slowness: Int64 = 0
  private var slownessDue: MonotonicInstant?
  /// What is held against it while requests wait for its answers.
  var silence: Silence?
  /// How long they may.
  var patience = Patience()
  /// When it answered last that its service does not work.
  private var lastRefusal = MonotonicInstant(nanoseconds: .min)
  /// What failures of late have changed: as it was before them.
  private var before: (since: MonotonicInstant, circuit: Circuit, penalties: Int64, until: MonotonicInstant?)?

  // MARK: What is known

  /// The time until a request can be sent. From TCP handshakes alone when no TLS handshake was measured: TLS 1.3
  /// takes one more round trip.
  func readiness(secure: Bool) -> RoundTripEstimate? { ready ?? roundTrip?.scaled(by: secure ? 2 : 1) }

  /// What the failures of late add to the score, or `nil` when there were none.
  func penalty(at now: MonotonicInstant) -> Duration? {
    guard let penalisedUntil, now < penalisedUntil else { return nil }
    return Self.penalty * Double(penalties) / 2
  }

  /// What the endpoint is weighed with: its smoothed time to be ready, by how much its answers begin later than is
  /// usual, and penalties. `nil` without history.
  func score(secure: Bool, at now: MonotonicInstant) -> Duration? {
    let time = readiness(secure: secure).map { $0.smoothed + .nanoseconds(slowness) }
    guard let penalty = penalty(at: now) else { return time }
    return (time ?? .zero) + penalty
  }

  /// The score in nanoseconds when nothing is held against the endpoint.
  func clearScore(secure: Bool) -> Int64? {
    readiness(secure: secure).map { $0.smoothedNanoseconds + slowness }
  }

  /// Whether the endpoint is used.
  ///
  /// - Parameter unverified: for a request that does not ask whose the certificate is.
  func state(at now: MonotonicInstant, unverified: Bool = false) -> CircuitState {
    let state = circuit.state(at: now)
    guard let quarantine, !unverified else { return state }
    return state == .open || now < quarantine.opens || isTried(at: now) ? .quarantined : .halfOpen
  }

  /// Whether its certificate was wrong when it was last looked at.
  var isQuarantined: Bool { quarantine != nil }

  /// When a probe is to check the certificate of an endpoint in quarantine: not while a check is under way, nor while
  /// its circuit is open. `nil` when it is in none.
  func certificateCheck(at now: MonotonicInstant) -> MonotonicInstant? {
    guard let quarantine else { return nil }
    return circuit.attemptEnds(at: now) ?? max(quarantine.due, circuit.openUntil(at: now) ?? quarantine.due)
  }

  /// Whether the one attempt of the half-open state is under way.
  func isTried(at now: MonotonicInstant) -> Bool { circuit.isTried(at: now) }

  /// Whether only an answer shows that it works again, and no connection.
  var needsAnswer: Bool { circuit.lastFault != .unreachable }

  /// Whether it asked not to be used, and the time is not over.
  func isResting(at now: MonotonicInstant) -> Bool { circuit.rest(at: now) != nil }

  /// How it failed last.
  var lastFault: Circuit.Fault { circuit.lastFault }

  /// Why the endpoint is left out in this state.
  func exclusion(in state: CircuitState, at now: MonotonicInstant) -> Exclusion {
    if state == .quarantined, let quarantine {
      return .quarantine(quarantine.notice(isTried(at: now) ? nil : certificateCheck(at: now)))
    }
    if state == .halfOpen { return .reason(.attemptUnderWay) }
    if let rest = circuit.rest(at: now) { return .reason(.resting(for: rest, last: lastFailure)) }
    let failures = circuit.failures(at: now)
    if failures >= Circuit.threshold { return .reason(.failures(inARow: failures, last: lastFailure)) }
    let recent = circuit.recentCounts
    return .reason(.failureRate(failed: recent.failures, attempts: recent.attempts, last: lastFailure))
  }

  /// Whether it was seen to work since a moment: what failed and had begun before is no news.
  func hasWorked(since moment: MonotonicInstant) -> Bool { lastSucceeded > moment }

  /// When an answer of it began last.
  var lastAnswered: MonotonicInstant { max(firstByte.last ?? lastRefusal, lastRefusal) }

  /// Whether nothing is held against the endpoint: a success then says nothing new.
  var isClear: Bool { circuit.isClear && penalisedUntil == nil && quarantine == nil && silence == nil }

  /// When the passing of time changes something next.
  func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
    if isClear { return slownessDue }
    let next = circuit.nextChange(after: now).earlier(penalisedUntil, after: now)
    return next.earlier(quarantine?.opens, after: now).earlier(slownessDue, after: now)
  }

  // MARK: What happens

  /// A connection was ready. That alone ends no quarantine: it may be one that nobody verified.
  ///
  /// - Parameters:
  ///   - connect: the time of the TCP handshake, when it was measured.
  ///   - ready: the time until a request could be sent, when it was measured.
  ///   - answered: whether an answer came as well. After failures of the service a connection alone is no success.
  /// - Returns: whether anything has changed.
  mutating func succeeded(
    connect: Duration?, ready: Duration?, answered: Bool = true, at now: MonotonicInstant
  ) -> Bool {
    if connect != nil || ready != nil { measured(connect: connect, ready: ready, at: now) }
    let isMeasured = connect != nil || ready != nil
    if !answered && needsAnswer { return isMeasured }
    let isHeard = answered && answeredWhileSilent(at: now)
    let isNews = isMeasured || !circuit.isClear || penalisedUntil != nil || isHeard
    circuit.succeeded(at: now)
    lastSucceeded = now
    penalisedUntil = nil
    before = nil
    return isNews
  }

  /// A TCP handshake was done, or a connection was ready, which says nothing of what comes after it.
  mutating func measured(connect: Duration?, ready: Duration? = nil, at now: MonotonicInstant) {
    if let connect {
      roundTrip.add(connect, age: lastConnect.map { now - $0 } ?? .zero)
      leastRoundTrip = min(RoundTripEstimate.believed(connect.nanoseconds), leastRoundTrip ?? .max)
      lastConnect = now
    }
    if let ready {
      self.ready.add(ready, age: lastReady.map { now - $0 } ?? .zero)
      lastReady = now
    }
  }

  /// An answer began.
  ///
  /// - Parameters:
  ///   - wait: from the request's last byte to the answer's first, in nanoseconds.
  ///   - index: the endpoint's.
  ///   - usual: what is usual for the origin; learns from it.
  /// - Returns: whether the score has changed so much that it is worth looking at.
  mutating func answered(after wait: Int64, of index: Int, usual: inout UsualTime, at now: MonotonicInstant)
    -> Bool
  {
    let time = max(0, RoundTripEstimate.believed(wait) - (roundTrip?.smoothedNanoseconds ?? 0))
    let bound = usual.bound ?? .max
    usual.add(time, of: index, at: now)
    firstByte.add(time, at: now)
    lateAnswers = time > bound ? min(lateAnswers + 1, Self.slowInARow) : 0
    // The usual case: nothing was held against it, and nothing is.
    if slowness == 0, lateAnswers < Self.slowInARow { return false }
    return weighSlowness(against: bound, at: now)
  }

  /// Time has passed since an endpoint was found to be slow.
  mutating func weighSlowness(against bound: Int64, at now: MonotonicInstant) -> Bool {
    let excess = max(0, firstByte.value(at: now) - bound)
    // What is less than a tenth is not worth a new order.
    guard excess == 0 || abs(excess - slowness) > slowness / 10 else { return false }
    slowness = excess < 1_000_000 ? 0 : excess
    slownessDue = slowness > 0 ? now + Self.slownessReview : nil
    return true
  }

  /// Whether its slowness is to be weighed again.
  func isSlownessDue(at now: MonotonicInstant) -> Bool { slownessDue.map { $0 <= now } ?? false }

  /// Puts off weighing its slowness again.
  mutating func putOffSlowness(at now: MonotonicInstant) {
    if slownessDue != nil { slownessDue = now + Self.slownessReview }
  }

  /// The host's certificate was presented on a new connection, and verified.
  ///
  /// - Returns: whether the endpoint was in quarantine.
  mutating func verified() -> Bool {
    defer { quarantine = nil }
    return quarantine != nil
  }

  /// Takes over what an earlier run has learned, unless something is known already.
  ///
  /// - Returns: whether it was of use.
  mutating func adopt(
    ready: RoundTripEstimate?, roundTrip: RoundTripEstimate?, measured: MonotonicInstant
  ) -> Bool {
    guard self.ready == nil, self.roundTrip == nil, isClear, ready != nil || roundTrip != nil else {
      return false
    }
    self.ready = ready
    self.roundTrip = roundTrip
    // Old as it is, it weighs little beside what is measured now.
    lastReady = ready.map { _ in measured }
    lastConnect = roundTrip.map { _ in measured }
    return true
  }

  /// A connection failed.
  ///
  /// - Parameters:
  ///   - host: whose endpoint it is.
  ///   - fault: how, where the endpoint is to blame.
  ///   - begun: when it began, unless it was a probe's.
  ///   - pace: how soon a wrong certificate is checked again.
  /// - Returns: whether anything has changed.
  mutating func failed(
    _ failure: LegFailure, of host: String, as fault: Circuit.Fault = .unreachable,
    from begun: MonotonicInstant? = nil,
    pace: Quarantine.Pace = Quarantine.Pace(), at now: MonotonicInstant, using random: inout SplitMix64
  ) -> Bool {
    let blame = Blame(failure.kind)
    if blame == .nobody { return begun == nil && giveBack(at: now, byProbe: true) }
    if blame == .service {
      serviceFailed(
        failure.message, as: .useless, rest: nil, byProbe: begun == nil, at: now, using: &random)
      return true
    }
    (lastFailure, lastFailed) = (failure, now)
    if quarantine?.failedAgain(failure.kind, from: begun, at: now, using: &random) ?? false {
      _ = circuit.giveBack(byProbe: begun == nil)
    }
    if blame == .certificate {
      // A certificate costs the endpoint no score: requests without verification may use it.
      if quarantine == nil {
        quarantine = Quarantine(failure.kind, of: host, pace: pace, at: now, using: &random)
        circuit.endAttempt()
      }
      return true
    }
    remember(at: now)
    if blame == .endpoint { circuit.failed(fault, byProbe: begun == nil, at: now, using: &random) }
    penalise(failure, halves: 2, at: now)
    return true
  }

  /// The service behind the endpoint failed.
  ///
  /// - Parameters:
  ///   - reason: what it did, for people.
  ///   - fault: whether the next request may fare better.
  ///   - rest: how long it asked not to be used.
  ///   - isAnswer: whether it said so itself.
  ///   - byProbe: whether a probe found it out.
  mutating func serviceFailed(
    _ reason: String, as fault: Circuit.Fault, rest: Duration?, isAnswer: Bool = false, byProbe: Bool = false,
    at now: MonotonicInstant,
    using random: inout SplitMix64
  ) {
    if isAnswer {
      lastRefusal = now
      _ = answeredWhileSilent(at: now)
    }
    remember(at: now)
    circuit.failed(fault, byProbe: byProbe, at: now, isHalf: true, using: &random)
    if let rest, rest > .zero { circuit.rest(for: rest, at: now) }
    penalise(LegFailure(.other, reason), halves: 1, at: now)
  }

  /// It went silent: it is left alone at once, however few failures there were.
  mutating func wentSilent(
    _ silence: Silence, _ failure: LegFailure, at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    let isNew = self.silence?.isCertain != true
    self.silence = silence
    guard isNew else { return }
    remember(at: now)
    // Where connections may work although requests stay without an answer, a connection is no sign that they would get one.
    let fault = silence.verdict == .dead ? Circuit.Fault.unreachable : .useless
    circuit.failed(fault, at: now, opens: true, using: &random)
    penalise(failure, halves: 2, at: now)
  }

  /// A new connection has shown whether it can be reached, while it may be silent.
  mutating func triedConnection(works: Bool, at now: MonotonicInstant) {
    guard let silence else { return }
    if works, silence.verdict == .dead {
      // It is back. What still waits there is of the time before.
      patience.excuse(at: now)
      self.silence = nil
    } else {
      self.silence?.connection = works ? .works : .fails
    }
  }

  /// It was this machine's network: what failures since a moment have changed is undone.
  ///
  /// - Returns: whether there was anything.
  mutating func forgive(since moment: MonotonicInstant) -> Bool {
    guard let before, before.since >= moment else { return false }
    (circuit, penalties, penalisedUntil) = (before.circuit, before.penalties, before.until)
    // The attempt that was under way then is over.
    circuit.endAttempt()
    self.before = nil
    return true
  }

  /// Takes the one attempt of the half-open state, or the check of a certificate.
  mutating func take(at now: MonotonicInstant, byProbe: Bool = false) {
    circuit.take(at: now, byProbe: byProbe)
  }

  /// Gives the attempt back: it was not made, or showed nothing.
  ///
  /// - Returns: whether there was one.
  mutating func giveBack(at now: MonotonicInstant, byProbe: Bool = false) -> Bool {
    guard circuit.giveBack(byProbe: byProbe) else { return false }
    quarantine?.wasGivenUp(at: now)
    return true
  }

  private mutating func remember(at now: MonotonicInstant) {
    if let before, now < before.since + LocalNetwork.forgiven { return }
    before = (now, circuit, penalties, penalisedUntil)
  }

  private mutating func penalise(_ failure: LegFailure, halves: Int64, at now: MonotonicInstant) {
    let isPenalised = penalisedUntil.map { now < $0 } ?? false
    penalties = isPenalised ? min(penalties + halves, 2 * Self.mostPenalties) : halves
    lastFailure = failure
    lastFailed = now
    // The penalty ends with the circuit, so that a half-open endpoint stands where its speed puts it.
    penalisedUntil = circuit.openUntil(at: now) ?? now + Circuit.shortest
  }
}
