import NetOptCore

/// Excludes an endpoint because of its certificate, until a new connection verifies the right certificate.
///
/// The first check of the certificate comes 1 s after the failure. Each failed check doubles the wait, up to
/// 60 s. Normally a check is a probe: it ends with the TLS handshake and sends no request, so it may come
/// soon. When there are no probes, the leg of a request is the check. The leg, too, verifies the certificate
/// before it sends the first byte of the request (docs/adr/0027).
struct Quarantine: Hashable, Sendable {
  /// How soon a certificate is checked again.
  struct Pace: Hashable, Sendable {
    /// The wait before the first check, before jitter.
    var first = Duration.seconds(1)
    /// The longest wait before a check, before jitter.
    var longest = Duration.seconds(60)
    /// Whether probes check the certificate. If true, requests leave a due check to the probes for 1 s, so
    /// that a probe has enough time to begin.
    var isProbed = true

    /// How long after `due` requests leave the check to a probe.
    fileprivate var lead: Duration { isProbed ? .seconds(1) : .zero }
  }

  /// The maximum jitter, as a fraction of the wait. Jitter never shortens a wait, because a check costs the
  /// server a handshake.
  private static let jitter = 0.2
  /// The minimum wait before a check that did not finish is repeated.
  private static let pause = Duration.seconds(1)

  /// The last certificate failure.
  private var failure: LegFailure
  /// When the quarantine began.
  let begun: MonotonicInstant
  /// When the next check is due.
  private(set) var due: MonotonicInstant
  /// How soon the checks come.
  private let pace: Pace
  /// The number of checks that were scheduled so far. Each one doubles the next wait.
  private var checks = 0

  /// When requests may make the check, and plans no longer exclude the endpoint: at `due` or, when probes
  /// check certificates, 1 s later. The quarantine itself ends only when the certificate is verified.
  var requestsMayCheckAt: MonotonicInstant { due + pace.lead }

  /// Begins a quarantine after a certificate failure.
  init(
    _ failure: LegFailure, pace: Pace, at now: MonotonicInstant, using random: inout SplitMix64
  ) {
    self.failure = failure
    self.pace = pace
    begun = now
    due = now
    scheduleNextCheck(at: now, using: &random)
  }

  /// Records another failed connection to the endpoint. Schedules the next check if the connection was a
  /// check.
  ///
  /// - Parameter begun: when the leg began; `nil` for a probe. A probe is always a check. A leg is a check
  ///   when it began at `due` or later. An earlier leg says nothing new.
  /// - Returns: whether the connection was a check.
  mutating func failedAgain(
    _ failure: LegFailure, from begun: MonotonicInstant?, at now: MonotonicInstant,
    using random: inout SplitMix64
  ) -> Bool {
    if FailureCause(failure.kind) == .certificate { self.failure = failure }
    guard begun.map({ $0 >= due }) ?? true else { return false }
    scheduleNextCheck(at: now, using: &random)
    return true
  }

  /// Records that a check was not made or did not finish. The next check is then due after 1 s at the
  /// earliest.
  mutating func wasGivenUp(at now: MonotonicInstant) { due = max(due, now + Self.pause) }

  /// Computes the next wait, and sets `due` to its end.
  private mutating func scheduleNextCheck(at now: MonotonicInstant, using random: inout SplitMix64) {
    // This number of doublings reaches every possible longest wait. More would overflow.
    let wait = min(pace.first * (1 << min(checks, 20)), pace.longest)
    checks += 1
    due = now + wait * Double.random(in: 1...(1 + Self.jitter), using: &random)
  }

  /// Why plans exclude the endpoint, and when its certificate is checked next: the values from which an
  /// `ExclusionReason` is made when a caller asks for it.
  struct Notice: Hashable, Sendable {
    fileprivate let failure: LegFailure
    /// When the next check is due; `nil` while a check is under way.
    fileprivate let due: MonotonicInstant?
    /// Whether a probe makes the next check. If false, a request makes it.
    fileprivate let isProbed: Bool

    /// The reason in the form for callers, at a moment.
    func reason(at now: MonotonicInstant) -> ExclusionReason {
      .certificate(
        failure, nextCheck: due.map { .seconds(seconds(until: $0, at: now)) }, byProbe: isProbed)
    }

    /// When the reason next changes because time passes: the number of seconds in it becomes smaller. `nil`
    /// when no check is still to come.
    func nextChange(after now: MonotonicInstant) -> MonotonicInstant? {
      guard let due, due > now else { return nil }
      return due + .seconds(1 - seconds(until: due, at: now))
    }

    /// The seconds until the check, rounded up so that the check is due when they have passed.
    private func seconds(until due: MonotonicInstant, at now: MonotonicInstant) -> Int64 {
      let rest = due.nanoseconds(since: now)
      return rest <= 0 ? 0 : (rest - 1) / 1_000_000_000 + 1
    }
  }

  /// Why plans exclude the endpoint.
  ///
  /// - Parameter due: when the next check can begin. An open circuit breaker may delay it beyond `self.due`.
  ///   `nil` while a check is under way.
  func notice(_ due: MonotonicInstant?) -> Notice {
    Notice(failure: failure, due: due, isProbed: pace.isProbed)
  }
}
