import NetOptCore

/// Distinguishes failures of this machine's network from failures of endpoints. The planner suspects the
/// network when at least two endpoints and DNS fail within 5 s and nothing works.
///
/// While the network is suspected, failures count against no endpoint, and the client sends few probes. The
/// first success ends the suspicion, and so do 30 s without further failures.
struct LocalNetwork: Sendable {
  /// The maximum age of the failures that together cause a suspicion.
  static let window = Duration.seconds(5)
  /// How long a suspicion lasts after the last failure.
  static let suspicionDuration = Duration.seconds(30)
  /// A suspicion also blames the network for failures in this time before the suspicion began. The planner
  /// undoes the effects of these failures on an endpoint, unless the endpoint has worked since.
  static let undoWindow = Duration.seconds(60)
  /// The first pause between two probes during a suspicion. Each further pause is twice as long.
  static let shortestPause = Duration.seconds(1)
  /// The longest pause between two probes during a suspicion.
  static let longestPause = Duration.seconds(60)

  /// The last two addresses that failed, the newer one first.
  private var failures: [(address: IPAddress, at: MonotonicInstant)] = []
  /// When a DNS look-up last failed because no name server responded; `nil` if that has not happened since
  /// the last success.
  private var lastLookUpFailure: MonotonicInstant?
  /// When the suspicion ends if nothing more fails; `nil` if there was no suspicion since the last success.
  private var suspectedUntil: MonotonicInstant?
  /// The pause that ends at `nextProbe`. The pause after `nextProbe` is twice as long, up to `longestPause`.
  private var pause = Self.shortestPause
  /// When the next probe may test whether the network works again; `nil` if there was no suspicion since the
  /// last success. Has a meaning only while the network is suspected.
  private(set) var nextProbe: MonotonicInstant?

  /// Whether no endpoint and no DNS look-up has failed since the last success.
  var hasNoFailures: Bool { failures.isEmpty && lastLookUpFailure == nil && suspectedUntil == nil }

  /// Whether the planner suspects that the network causes the failures.
  func isSuspected(at now: MonotonicInstant) -> Bool { suspectedUntil.map { now < $0 } ?? false }

  /// Records that an address could not be reached.
  mutating func failed(_ address: IPAddress, at now: MonotonicInstant) {
    failures.removeAll { $0.address == address }
    failures.insert((address, now), at: 0)
    if failures.count > 2 { failures.removeLast() }
  }

  /// Records that no name server responded.
  mutating func lookUpDidFail(at now: MonotonicInstant) { lastLookUpFailure = now }

  /// Decides from the recorded failures whether the network is suspected. Prolongs a suspicion.
  ///
  /// - Returns: whether a suspicion begins now.
  mutating func judge(at now: MonotonicInstant) -> Bool {
    let isBad =
      failures.count == 2 && failures.allSatisfy { now <= $0.at + Self.window }
      && lastLookUpFailure.map { now <= $0 + Self.window } ?? false
    guard isBad || isSuspected(at: now) else { return false }
    let isNew = !isSuspected(at: now)
    suspectedUntil = now + Self.suspicionDuration
    if isNew {
      pause = Self.shortestPause
      nextProbe = now + pause
    }
    return isNew
  }

  /// Checks whether a probe of the network is due. If so, schedules the next probe after a longer pause. The
  /// caller must then send the probe that is due.
  ///
  /// - Returns: whether a probe is due.
  mutating func takeProbe(at now: MonotonicInstant) -> Bool {
    guard let nextProbe, nextProbe <= now else { return false }
    pause = min(pause * 2, Self.longestPause)
    self.nextProbe = now + pause
    return true
  }

  /// Records a success: an endpoint was reached. Forgets all failures and ends the suspicion.
  mutating func succeeded() { if !hasNoFailures { self = LocalNetwork() } }
}
