import NetOptCore

/// The state of an endpoint's circuit breaker and quarantine. It decides whether requests use the endpoint.
public enum CircuitState: String, Hashable, Sendable {
  /// Requests use the endpoint.
  case closed
  /// The endpoint failed repeatedly, went silent, or asked not to be used. For a time (the open time),
  /// requests go to other endpoints. A plan may still have this endpoint as a last resort.
  case open
  /// The open time is over. One attempt, by a request or a probe, is allowed. Its success closes the circuit
  /// breaker, and its failure opens it again.
  case halfOpen = "half-open"
  /// The endpoint's certificate was wrong. Requests do not use the endpoint until a new connection, normally
  /// of a probe, verifies the right certificate. The first check comes 1 s after the failure. Each failed
  /// check doubles the wait before the next check, up to 60 s.
  case quarantined
}

/// A circuit breaker: keeps requests away from a failing endpoint, and lets one attempt through now and then.
///
/// It opens after three failures in a row, or when fewer than 80 % of at least five attempts within 30 s
/// succeeded. It stays open for 5 s at first. When the one attempt of the half-open state fails, the next
/// open time is twice as long, up to 300 s. Jitter changes each open time by up to 20 %, so that clients do
/// not come back together. A failure of the service, such as a response with status 502, 503 or 504, counts
/// as half a failure. A success closes the circuit breaker. The circuit breaker forgets a streak of failures
/// 10 minutes after the last failure or after the end of the open time, whichever is later.
struct Circuit: Hashable, Sendable {
  /// The number of failures in a row that open a circuit breaker.
  static let threshold = 3
  /// The first open time, before jitter.
  static let shortest = Duration.seconds(5)
  /// The longest open time, before jitter. Also the longest rest that an endpoint can ask for.
  static let longest = Duration.seconds(300)
  /// The maximum jitter in both directions, as a fraction of the open time.
  static let jitter = 0.2
  /// How long the circuit breaker remembers a streak of failures after the last failure, or after the end of
  /// the open time if that is later.
  static let memory = Duration.seconds(600)
  /// How long the circuit breaker waits for the result of the one attempt of the half-open state. It allows
  /// another attempt after that.
  static let attemptLimit = Duration.seconds(30)

  /// The failures in a row, counted in halves: 1 for a failure of the service, 2 for any other failure.
  private var streak = 0
  /// The attempts of the last 30 s and their failures.
  private var recent = OutcomeWindow()
  /// The number of times that failures have opened the circuit breaker since the last success. Each one
  /// doubles the next open time.
  private var openings = 0
  /// When the last failure occurred, or when the endpoint last asked not to be used. Both count for
  /// `memory`.
  private var lastFailure: MonotonicInstant?
  /// When the open time ends or ended; `nil` when the circuit breaker has not opened since the last success.
  private var openTimeEnd: MonotonicInstant?
  /// When the circuit breaker left the closed state; `nil` when it has not opened since the last success.
  private(set) var openSince: MonotonicInstant?
  /// When the one attempt of the half-open state began; `nil` when none is under way. A certificate check
  /// counts as such an attempt.
  private var attemptStart: MonotonicInstant?
  /// Whether a probe makes the attempt that began at `attemptStart`. If false, a request makes it.
  private var isAttemptOfProbe = false
  /// The rest that the endpoint asked for, which may be over; `nil` if it has not asked since the last
  /// success. The circuit breaker may be open for longer.
  private var asked: Rest?
  /// The kind of the last failure. It decides whether a ready connection shows that the endpoint works again,
  /// or only a response does.
  private(set) var lastFault = Fault.unreachable

  /// A time for which the endpoint asked not to be used (`Retry-After`).
  private struct Rest: Hashable, Sendable {
    /// The whole length of the rest, at most `longest`.
    let time: Duration
    /// When the rest ends.
    let end: MonotonicInstant
  }

  /// The ways in which an endpoint fails.
  enum Fault: Hashable, Sendable {
    /// No connection to the endpoint became ready. A ready connection shows that the endpoint works again.
    case unreachable
    /// A ready connection broke, or a response was incomplete or invalid. Only a response shows that the
    /// endpoint works again. The next request may get one.
    case broke
    /// Connections to the endpoint work, but requests get no response or an unavailable service (such as
    /// status 503). Only a useful response shows that the endpoint works again.
    case useless
  }

  /// Whether the endpoint has neither failed nor asked for a rest since the last success. Another success
  /// then only adds to the counts of the last 30 s.
  var hasNoFailures: Bool { streak == 0 && openTimeEnd == nil }

  /// The number of failures in a row, rounded up to a whole number; 0 once the streak is forgotten.
  func failures(at now: MonotonicInstant) -> Int { isForgotten(at: now) ? 0 : (streak + 1) / 2 }

  /// The number of attempts in the 30 s before the last attempt, and the number of failures among them.
  var recentCounts: (attempts: Int, failures: Int) { recent.counts }

  /// The state for requests. Never `quarantined`: a circuit breaker does not know about certificates.
  func state(at now: MonotonicInstant) -> CircuitState {
    guard let openTimeEnd, !isForgotten(at: now) else { return .closed }
    return now < openTimeEnd ? .open : .halfOpen
  }

  /// The whole time for which the endpoint asked not to be used, not the time that is left of it. `nil` when
  /// it is over, or when the endpoint asked for none.
  func rest(at now: MonotonicInstant) -> Duration? { asked.flatMap { now < $0.end ? $0.time : nil } }

  /// Whether the one attempt of the half-open state, or a certificate check, is under way.
  func isAttemptUnderWay(at now: MonotonicInstant) -> Bool {
    attemptStart.map { now < $0 + Self.attemptLimit } ?? false
  }

  /// When the circuit breaker allows another attempt, even if the attempt under way then has no result; `nil`
  /// when no attempt is under way.
  func attemptEnds(at now: MonotonicInstant) -> MonotonicInstant? {
    isAttemptUnderWay(at: now) ? attemptStart.map { $0 + Self.attemptLimit } : nil
  }

  /// Notes that a request or a probe makes the one attempt of the half-open state, or a certificate check.
  mutating func take(at now: MonotonicInstant, byProbe: Bool = false) {
    (attemptStart, isAttemptOfProbe) = (now, byProbe)
  }

  /// Ends the attempt without a result: it was not made, or it showed nothing.
  ///
  /// - Parameter byProbe: true ends only an attempt of a probe, and false ends only an attempt of a request.
  ///   So a request with an older plan does not end the attempt of a probe.
  /// - Returns: whether there was such an attempt.
  mutating func giveBack(byProbe: Bool = false) -> Bool {
    guard attemptStart != nil, isAttemptOfProbe == byProbe else { return false }
    attemptStart = nil
    return true
  }

  /// Ends the attempt, whether a probe or a request took it.
  mutating func endAttempt() { attemptStart = nil }

  /// Records a successful attempt.
  mutating func succeeded(at now: MonotonicInstant) {
    if !hasNoFailures {
      let isClosed = openTimeEnd == nil
      let window = recent
      self = Circuit()
      // A circuit breaker that was open begins with new counts.
      if isClosed { recent = window }
    }
    recent.add(halves: 0, at: now)
  }

  /// Records a failed attempt.
  ///
  /// - Parameters:
  ///   - fault: the kind of failure.
  ///   - byProbe: whether the attempt was a probe. A failed probe does not end a half-open attempt that a
  ///     request makes, and a failed request does not end one that a probe makes: the failure belongs to
  ///     another attempt.
  ///   - isHalf: whether the failure counts half, as failures of a service do.
  ///   - opens: whether to open a closed circuit breaker because of this failure alone.
  mutating func failed(
    _ fault: Fault = .unreachable, byProbe: Bool = false, at now: MonotonicInstant, isHalf: Bool = false,
    opens: Bool = false,
    using random: inout SplitMix64
  ) {
    if isForgotten(at: now) { self = Circuit() }
    let state = state(at: now)
    streak += isHalf ? 1 : 2
    recent.add(halves: isHalf ? 1 : 2, at: now)
    lastFailure = now
    if byProbe == isAttemptOfProbe { attemptStart = nil }
    lastFault = fault
    // A failure in the open state belongs to an attempt that began before the circuit breaker opened. It says
    // nothing new.
    if state == .open { return }
    if state == .closed, !opens, streak < 2 * Self.threshold, !recent.isBad { return }
    // Seven doublings exceed `longest`. Many more would overflow.
    let time = min(Self.shortest * (1 << min(openings, 7)), Self.longest)
    openings += 1
    if state == .closed { openSince = now }
    openTimeEnd = now + time * Double.random(in: (1 - Self.jitter)...(1 + Self.jitter), using: &random)
  }

  /// Records that the endpoint asked not to be used for a time, of which at most `longest` counts. Opens the
  /// circuit breaker until the end of this time, unless it stays open for longer anyway.
  mutating func rest(for time: Duration, at now: MonotonicInstant) {
    let time = min(time, Self.longest)
    let until = now + time
    if asked.map({ until > $0.end }) ?? true { asked = Rest(time: time, end: until) }
    if let openTimeEnd, until <= openTimeEnd { return }
    if state(at: now) == .closed { openSince = now }
    lastFailure = now
    openTimeEnd = until
    attemptStart = nil
    lastFault = .useless
  }

  /// When the open time ends; `nil` when the circuit breaker is not open.
  func openUntil(at now: MonotonicInstant) -> MonotonicInstant? {
    state(at: now) == .open ? openTimeEnd : nil
  }

  /// When the state next changes because time passes; `nil` when only an event changes it.
  func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
    var next: MonotonicInstant?
    next = next.earlier(openTimeEnd, after: now)
    next = next.earlier(asked?.end, after: now)
    next = next.earlier(attemptStart.map { $0 + Self.attemptLimit }, after: now)
    return next.earlier(forgottenAt, after: now)
  }

  /// When the circuit breaker forgets the streak of failures, unless there is another failure before. `nil`
  /// without failures.
  private var forgottenAt: MonotonicInstant? {
    lastFailure.map { max($0, openTimeEnd ?? $0) + Self.memory }
  }

  /// Whether the circuit breaker has forgotten the streak by now.
  private func isForgotten(at now: MonotonicInstant) -> Bool { forgottenAt.map { now >= $0 } ?? false }
}

extension Optional<MonotonicInstant> {
  /// The earlier of this moment and `other`. Ignores an `other` that is not later than `now`.
  func earlier(_ other: MonotonicInstant?, after now: MonotonicInstant) -> MonotonicInstant? {
    guard let other, other > now else { return self }
    return map { Swift.min($0, other) } ?? other
  }
}
