import NetOptCore

/// Tells failures of this machine's network from failures of endpoints. The network is suspected when at
/// least two endpoints and DNS fail within 5 s and nothing works.
///
/// While the network is suspected, failures count against no endpoint, and probes are few. The first success
/// ends the suspicion, and so do 30 s without further failures.
struct LocalNetwork: Sendable {
  /// The maximum age of failures that count together.
  static let window = Duration.seconds(5)
  /// How long the network is suspected after the last failure.
  static let memory = Duration.seconds(30)
  /// How far back failures count as the network's when a suspicion begins, if nothing has worked since.
  static let undoWindow = Duration.seconds(60)
  /// The pauses between probes: the first and the longest.
  static let shortestPause = Duration.seconds(1)
  static let longestPause = Duration.seconds(60)

  /// The last two addresses that failed, the newer one first.
  private var failures: [(address: IPAddress, at: MonotonicInstant)] = []
  private var lookUpFailed: MonotonicInstant?
  private var suspectedUntil: MonotonicInstant?
  private var pause = Self.shortestPause
  /// When the next probe may test whether the network works again.
  private(set) var nextProbe: MonotonicInstant?

  /// Whether a success would change nothing.
  var hasNoFailures: Bool { failures.isEmpty && lookUpFailed == nil && suspectedUntil == nil }

  /// Whether the network is taken to be the cause of failures.
  func isSuspected(at now: MonotonicInstant) -> Bool { suspectedUntil.map { now < $0 } ?? false }

  /// Records that an address could not be reached.
  mutating func failed(_ address: IPAddress, at now: MonotonicInstant) {
    failures.removeAll { $0.address == address }
    failures.insert((address, now), at: 0)
    if failures.count > 2 { failures.removeLast() }
  }

  /// Records that no name server responded.
  mutating func lookUpDidFail(at now: MonotonicInstant) { lookUpFailed = now }

  /// Decides from the failures until now whether the network is suspected.
  ///
  /// - Returns: whether a suspicion begins now.
  mutating func judge(at now: MonotonicInstant) -> Bool {
    let isBad =
      failures.count == 2 && failures.allSatisfy { now <= $0.at + Self.window }
      && lookUpFailed.map { now <= $0 + Self.window } ?? false
    guard isBad || isSuspected(at: now) else { return false }
    let isNew = !isSuspected(at: now)
    suspectedUntil = now + Self.memory
    if isNew {
      pause = Self.shortestPause
      nextProbe = now + pause
    }
    return isNew
  }

  /// Takes the probe that tests whether the network works again.
  ///
  /// - Returns: whether the probe is due.
  mutating func takeProbe(at now: MonotonicInstant) -> Bool {
    guard let nextProbe, nextProbe <= now else { return false }
    pause = min(pause * 2, Self.longestPause)
    self.nextProbe = now + pause
    return true
  }

  /// Records that something was reached.
  mutating func succeeded() { if !hasNoFailures { self = LocalNetwork() } }
}
