import NetOptCore

/// Keeps an endpoint out because of its certificate, until a new connection verifies the right one.
///
/// The certificate is checked again 1 s after the failure, and after each check that fails twice as long, up to 60 s. A
/// check is a probe: it ends with the TLS handshake and sends no request, so it may come soon. Where no probe comes,
/// a request's leg is the check, which verifies too before a byte of the request is sent (docs/adr/0027).
struct Quarantine: Hashable, Sendable {
  /// How soon a certificate is checked again.
  struct Pace: Hashable, Sendable {
    /// The wait before the first check, and the longest wait, before jitter.
    var first = Duration.seconds(1)
    var longest = Duration.seconds(60)
    /// Whether probes check it. Requests then leave the check to them for a second, which is enough for a probe to
    /// begin.
    var isProbed = true

    /// How long a check that is due is left to a probe.
    fileprivate var lead: Duration { isProbed ? .seconds(1) : .zero }
  }

  /// By how much of itself jitter makes a wait longer. Never shorter: a check costs its server a handshake.
  private static let jitter = 0.2
  /// How soon a check is made again that did not come to its end.
  private static let pause = Duration.seconds(1)

  /// What was wrong.
  private var kind: LegFailure.Kind
  /// For whose certificate it is checked.
  private let host: String
  /// When the next check is due.
  private(set) var due: MonotonicInstant
  private let pace: Pace
  private var checks = 0

  /// When a request may be the check.
  var opens: MonotonicInstant { due + pace.lead }

  /// Begins a quarantine because of a failure that is to be blamed on the certificate.
  init(
    _ kind: LegFailure.Kind, of host: String, pace: Pace, at now: MonotonicInstant,
    using random: inout SplitMix64
  ) {
    self.kind = kind
    self.host = host
    self.pace = pace
    due = now
    putOff(at: now, using: &random)
  }

  /// A connection failed once more.
  ///
  /// - Parameter begun: when the leg began, unless it was a probe's. A probe is always a check; another leg is one when it
  ///   began after a check was due. Those before say nothing new.
  /// - Returns: whether it was a check.
  mutating func failedAgain(
    _ kind: LegFailure.Kind, from begun: MonotonicInstant?, at now: MonotonicInstant,
    using random: inout SplitMix64
  ) -> Bool {
    if Blame(kind) == .certificate { self.kind = kind }
    guard begun.map({ $0 >= due }) ?? true else { return false }
    putOff(at: now, using: &random)
    return true
  }

  /// A check was not made, or came to no end.
  mutating func wasGivenUp(at now: MonotonicInstant) { due = max(due, now + Self.pause) }

  private mutating func putOff(at now: MonotonicInstant, using random: inout SplitMix64) {
    // So many doublings reach any longest wait that there is; more of them would overflow.
    let wait = min(pace.first * (1 << min(checks, 20)), pace.longest)
    checks += 1
    due = now + wait * Double.random(in: 1...(1 + Self.jitter), using: &random)
  }

  /// Why the endpoint is left out, and when its certificate is checked again.
  struct Notice: Hashable, Sendable {
    fileprivate let kind: LegFailure.Kind
    fileprivate let host: String
    /// When the next check is due; `nil` while it is under way.
    fileprivate let due: MonotonicInstant?
    fileprivate let isProbed: Bool

    /// The reason, at the moment for which it is asked.
    func reason(at now: MonotonicInstant) -> ExclusionReason {
      .certificate(
        kind, host: host, nextCheck: due.map { .seconds(seconds(until: $0, at: now)) }, byProbe: isProbed)
    }

    /// When the reason changes by itself.
    func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
      guard let due, due > now else { return nil }
      return due + .seconds(1 - seconds(until: due, at: now))
    }

    /// Rounded up: when that time is over, it has been.
    private func seconds(until due: MonotonicInstant, at now: MonotonicInstant) -> Int64 {
      let rest = due.nanoseconds(since: now)
      return rest <= 0 ? 0 : (rest - 1) / 1_000_000_000 + 1
    }
  }

  /// Why the endpoint is left out.
  ///
  /// - Parameter due: when the next check is due, for whatever reason; `nil` while it is under way.
  func notice(_ due: MonotonicInstant?) -> Notice {
    Notice(kind: kind, host: host, due: due, isProbed: pace.isProbed)
  }
}
