import NetOptCore

/// Whether an endpoint is used.
public enum CircuitState: String, Hashable, Sendable {
  /// It is used.
  case closed
  /// It failed again and again, and is left alone for a while.
  case open
  /// The while is over: one attempt shows how it goes on.
  case halfOpen = "half-open"
  /// Its certificate was wrong. It is left alone until a probe finds a right one, or for ten minutes.
  case quarantined
}

/// Keeps requests away from an endpoint that fails, and lets one through now and then to see whether it still does.
///
/// Three failures in a row open it, for 5 s, and after each failed attempt for twice as long, up to 300 s; each time
/// with jitter, so that clients do not come back together. A success closes it. Nothing is kept for ever: a streak of
/// failures is forgotten ten minutes after the last one or, when that is later, after the circuit became half-open.
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

  private var failures = 0
  private var openings = 0
  private var lastFailure: MonotonicInstant?
  private var opensUntil: MonotonicInstant?
  private var attempt: MonotonicInstant?

  /// Whether there is nothing that a success would change.
  var isClear: Bool { failures == 0 && opensUntil == nil }

  /// The failures in a row.
  func failures(at now: MonotonicInstant) -> Int { isForgotten(at: now) ? 0 : failures }

  /// Whether requests get through. Never `quarantined`, of which a circuit knows nothing.
  func state(at now: MonotonicInstant) -> CircuitState {
    guard let opensUntil, !isForgotten(at: now) else { return .closed }
    return now < opensUntil ? .open : .halfOpen
  }

  /// Whether the one attempt of a half-open circuit is under way.
  func isTried(at now: MonotonicInstant) -> Bool { attempt.map { now < $0 + Self.attemptLimit } ?? false }

  /// Takes the one attempt of a half-open circuit.
  mutating func take(at now: MonotonicInstant) { attempt = now }

  /// Gives the attempt back: it was not made, or it showed nothing.
  ///
  /// - Returns: whether there was one.
  mutating func giveBack() -> Bool {
    defer { attempt = nil }
    return attempt != nil
  }

  /// An attempt succeeded.
  mutating func succeeded() { self = Circuit() }

  /// An attempt failed.
  mutating func failed(at now: MonotonicInstant, using random: inout SplitMix64) {
    if isForgotten(at: now) { self = Circuit() }
    let state = state(at: now)
    failures += 1
    lastFailure = now
    attempt = nil
    // A failure while it is open is of an attempt that began before: it says nothing new.
    if state == .open || failures < Self.threshold { return }
    // Seven doublings reach the longest time; more of them would overflow.
    let time = min(Self.shortest * (1 << min(openings, 7)), Self.longest)
    openings += 1
    opensUntil = now + time * Double.random(in: (1 - Self.jitter)...(1 + Self.jitter), using: &random)
  }

  /// Until when the circuit is open, when it is.
  func openUntil(at now: MonotonicInstant) -> MonotonicInstant? { state(at: now) == .open ? opensUntil : nil }

  /// When the passing of time changes something next.
  func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
    let moments = [opensUntil, attempt.map { $0 + Self.attemptLimit }, forgottenAt]
    return moments.compactMap { $0 }.filter { $0 > now }.min()
  }

  private var forgottenAt: MonotonicInstant? {
    lastFailure.map { max($0, opensUntil ?? $0) + Self.memory }
  }

  private func isForgotten(at now: MonotonicInstant) -> Bool { forgottenAt.map { now >= $0 } ?? false }
}
