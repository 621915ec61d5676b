import NetOptCore

/// Whether an endpoint is used.
public enum CircuitState: String, Hashable, Sendable {
  /// It is used.
  case closed
  /// It failed again and again, or asked for a rest, and is left alone for a while.
  case open
  /// The while is over: one attempt shows how it goes on.
  case halfOpen = "half-open"
  /// Its certificate was wrong. Requests leave it alone until a probe verifies a right one: the first after a second, further
  /// ones after up to a minute.
  case quarantined
}

/// Keeps requests away from an endpoint that fails, and lets one through now and then to see whether it still does.
///
/// Three failures in a row open it, or fewer than 80 % successes of at least five attempts within 30 s, for 5 s, and
/// after each failed attempt for twice as long, up to 300 s; each time with jitter, so that clients do not come back
/// together. What a service answers (502, 503, 504) counts half. A success closes it. Nothing is kept for ever: a
/// streak of failures is forgotten ten minutes after the last one or, when that is later, after the circuit became
/// half-open.
struct Circuit: Hashable, Sendable {
  /// The failures in a row that open a circuit.
  static let threshold = 3
  /// How long a circuit is open the first time, and at most, before jitter.
  static let shortest = Duration.seconds(5)
  static let longest = Duration.seconds(300)
  /// How much longer or shorter jitter makes it, in parts of the whole.
  static let jitter = 0.2
  /// How long a streak of failures is remembered.
  static let memory = Duration.seconds(600)
  /// After what time an attempt of which nothing was heard no longer keeps others away.
  static let attemptLimit = Duration.seconds(30)

  /// The failures in a row, in halves.
  private var streak = 0
  private var recent = OutcomeWindow()
  private var openings = 0
  private var lastFailure: MonotonicInstant?
  private var opensUntil: MonotonicInstant?
  private var attempt: MonotonicInstant?
  private var isProbe = false
  /// How long the endpoint asked to be left alone, and until when that is. The circuit may be open for longer.
  private var asked: Rest?
  /// How the last failure came about, which decides what shows that the endpoint works again.
  private(set) var lastFault = Fault.unreachable

  private struct Rest: Hashable, Sendable {
    let time: Duration
    let end: MonotonicInstant
  }

  /// How an endpoint fails.
  enum Fault: Hashable, Sendable {
    /// No connection to it was ready. One that is shows that it works.
    case unreachable
    /// A connection that was ready broke. Only an answer shows that it works; the next request may get one.
    case broke
    /// Connections to it work, and requests get no answer that is of use.
    case useless
  }

  /// Whether there is nothing that a success would change.
  var isClear: Bool { streak == 0 && opensUntil == nil }

  /// The failures in a row.
  func failures(at now: MonotonicInstant) -> Int { isForgotten(at: now) ? 0 : (streak + 1) / 2 }

  /// The attempts of the last half minute, and those of them that failed, as they were at the last one.
  var recentCounts: (attempts: Int, failures: Int) { recent.counts }

  /// Whether requests get through. Never `quarantined`, of which a circuit knows nothing.
  func state(at now: MonotonicInstant) -> CircuitState {
    guard let opensUntil, !isForgotten(at: now) else { return .closed }
    return now < opensUntil ? .open : .halfOpen
  }

  /// How long the endpoint asked to be left alone, when that time is not over.
  func rest(at now: MonotonicInstant) -> Duration? { asked.flatMap { now < $0.end ? $0.time : nil } }

  /// Whether the one attempt of a half-open circuit is under way.
  func isTried(at now: MonotonicInstant) -> Bool { attempt.map { now < $0 + Self.attemptLimit } ?? false }

  /// Until when the one attempt of a half-open circuit keeps others away, when there is one.
  func attemptEnds(at now: MonotonicInstant) -> MonotonicInstant? {
    isTried(at: now) ? attempt.map { $0 + Self.attemptLimit } : nil
  }

  /// Takes the one attempt of a half-open circuit, for a probe or a request.
  mutating func take(at now: MonotonicInstant, byProbe: Bool = false) { (attempt, isProbe) = (now, byProbe) }

  /// Gives the attempt back: it was not made, or it showed nothing.
  ///
  /// - Parameter byProbe: by whom. A request of an older plan ends no attempt of a probe.
  /// - Returns: whether there was one.
  mutating func giveBack(byProbe: Bool = false) -> Bool {
    guard attempt != nil, isProbe == byProbe else { return false }
    attempt = nil
    return true
  }

  /// The attempt is over, whosever it was.
  mutating func endAttempt() { attempt = nil }

  /// An attempt succeeded.
  mutating func succeeded(at now: MonotonicInstant) {
    if !isClear {
      let isClosed = opensUntil == nil
      let window = recent
      self = Circuit()
      // A circuit that has been open begins anew.
      if isClosed { recent = window }
    }
    recent.add(halves: 0, at: now)
  }

  /// An attempt failed.
  ///
  /// - Parameters:
  ///   - fault: how.
  ///   - byProbe: whether it is a probe's. It ends no attempt of a request, nor the other way round: it may have begun before.
  ///   - isHalf: whether it counts half, as the failures of a service do.
  ///   - opens: whether this failure alone is enough.
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
    if byProbe == isProbe { attempt = nil }
    lastFault = fault
    // A failure while it is open is of an attempt that began before: it says nothing new.
    if state == .open { return }
    if state == .closed, !opens, streak < 2 * Self.threshold, !recent.isBad { return }
    // Seven doublings reach the longest time; more of them would overflow.
    let time = min(Self.shortest * (1 << min(openings, 7)), Self.longest)
    openings += 1
    opensUntil = now + time * Double.random(in: (1 - Self.jitter)...(1 + Self.jitter), using: &random)
  }

  /// The endpoint asked not to be used for a while.
  mutating func rest(for time: Duration, at now: MonotonicInstant) {
    let time = min(time, Self.longest)
    let until = now + time
    if asked.map({ until > $0.end }) ?? true { asked = Rest(time: time, end: until) }
    if let opensUntil, until <= opensUntil { return }
    lastFailure = now
    opensUntil = until
    attempt = nil
    lastFault = .useless
  }

  /// Until when the circuit is open, when it is.
  func openUntil(at now: MonotonicInstant) -> MonotonicInstant? { state(at: now) == .open ? opensUntil : nil }

  /// When the passing of time changes something next.
  func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
    var next: MonotonicInstant?
    next = next.earlier(opensUntil, after: now)
    next = next.earlier(asked?.end, after: now)
    next = next.earlier(attempt.map { $0 + Self.attemptLimit }, after: now)
    return next.earlier(forgottenAt, after: now)
  }

  private var forgottenAt: MonotonicInstant? {
    lastFailure.map { max($0, opensUntil ?? $0) + Self.memory }
  }

  private func isForgotten(at now: MonotonicInstant) -> Bool { forgottenAt.map { now >= $0 } ?? false }
}

extension Optional<MonotonicInstant> {
  /// The earlier of two moments, of which the second counts only when it is still to come.
  func earlier(_ other: MonotonicInstant?, after now: MonotonicInstant) -> MonotonicInstant? {
    guard let other, other > now else { return self }
    return map { Swift.min($0, other) } ?? other
  }
}
