import NetOptCore

/// Tells this machine's network from endpoints that fail: when two endpoints or more and DNS fail within a short
/// window, and nothing works, it is the network.
///
/// As long as it is suspected no failure is held against an endpoint, and probes are few. The first thing that works
/// ends that, and so does half a minute in which nothing more fails.
struct LocalNetwork: Sendable {
  /// How close together the failures have to be.
  static let window = Duration.seconds(5)
  /// How long the network is suspected after the last failure.
  static let memory = Duration.seconds(30)
  /// How long before it was found out failures may be the network's, when nothing has worked since.
  static let forgiven = Duration.seconds(60)
  /// The pauses between probes: the first and the longest.
  static let shortestPause = Duration.seconds(1)
  static let longestPause = Duration.seconds(60)

  /// The last two addresses that failed, the newer one first.
  private var failures: [(address: IPAddress, at: MonotonicInstant)] = []
  private var lookUpFailed: MonotonicInstant?
  private var suspectedUntil: MonotonicInstant?
  private var pause = Self.shortestPause
  /// When one probe may look whether it is back.
  private(set) var nextProbe: MonotonicInstant?

  /// Whether there is nothing that a success would change.
  var isClear: Bool { failures.isEmpty && lookUpFailed == nil && suspectedUntil == nil }

  /// Whether the network is taken to be the cause of what fails.
  func isSuspected(at now: MonotonicInstant) -> Bool { suspectedUntil.map { now < $0 } ?? false }

  /// An address could not be connected to.
  mutating func failed(_ address: IPAddress, at now: MonotonicInstant) {
    failures.removeAll { $0.address == address }
    failures.insert((address, now), at: 0)
    if failures.count > 2 { failures.removeLast() }
  }

  /// No name server gave an answer.
  mutating func lookUpDidFail(at now: MonotonicInstant) { lookUpFailed = now }

  /// Looks at what has failed until now.
  ///
  /// - Returns: whether the network is suspected from now on and was not before.
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

  /// Takes the probe that looks whether the network is back, when it is due.
  mutating func takeProbe(at now: MonotonicInstant) -> Bool {
    guard let nextProbe, nextProbe <= now else { return false }
    pause = min(pause * 2, Self.longestPause)
    self.nextProbe = now + pause
    return true
  }

  /// Something was reached.
  mutating func succeeded() { if !isClear { self = LocalNetwork() } }
}
