import NetOptCore

/// When an endpoint was last looked at, and where in its interval the next look lies.
struct ProbeTimes: Sendable {
  /// When its connections were last measured, or a probe of it was given out.
  var measured: MonotonicInstant?
  /// A fraction of the interval, drawn anew with each measurement: clients and endpoints do not take their turns
  /// together.
  var spread: Double

  init(_ random: inout SplitMix64) {
    spread = Double.random(in: 0..<1, using: &random)
  }
}

extension HostRoutes {
  /// How long after its last plan an origin counts as in use.
  static let useMemory = Duration.seconds(300)
  /// How often an endpoint of an origin in use is probed, before jitter, as long as nothing is held against it.
  static let shortestProbeInterval = Duration.seconds(180)
  /// The time between two probes of one origin that a long list comes to.
  static let probeSpacing = Duration.seconds(2)
  /// How much longer or shorter jitter makes the interval, in parts of the whole.
  static let probeJitter = 0.25

  /// How often each endpoint is probed: every few minutes, and less often where there are so many that probes would
  /// be more than one in two seconds.
  var probeInterval: Duration { max(Self.shortestProbeInterval, Self.probeSpacing * endpoints.count) }

  private static let shortestProbePause = Duration.seconds(1)

  /// Notes that a request is planned.
  mutating func used(at now: MonotonicInstant) {
    if !isInUse(at: now) { inUseSince = now }
    lastUsed = now
  }

  /// Whether the client sends requests to the origin.
  func isInUse(at now: MonotonicInstant) -> Bool {
    lastUsed.map { now < $0 + Self.useMemory } ?? false
  }

  /// Takes the probes that are due: those of half-open endpoints with their one attempt.
  mutating func takeDueProbes(at now: MonotonicInstant, using random: inout SplitMix64) -> [IPAddress] {
    guard isInUse(at: now) else { return [] }
    var due: [IPAddress] = []
    for index in endpoints.indices where probeDue(index, at: now).map({ $0 <= now }) ?? false {
      due.append(endpoints[index].listed.address)
      noteMeasured(index, at: now, using: &random)
      let health = endpoints[index].health
      if health.state(at: now) == .halfOpen, !health.needsAnswer { take(index, at: now) }
    }
    return due
  }

  /// When the next probe of any endpoint will be due, as far as is known.
  func nextProbe(at now: MonotonicInstant) -> MonotonicInstant? {
    guard isInUse(at: now) else { return nil }
    return endpoints.indices.compactMap { probeDue($0, at: now) }.min()
  }

  /// An endpoint's connections were measured, or are about to be.
  mutating func noteMeasured(_ index: Int, at now: MonotonicInstant, using random: inout SplitMix64) {
    endpoints[index].probing.measured = now
    endpoints[index].probing.spread = Double.random(in: 0..<1, using: &random)
  }

  /// When an endpoint's next probe is due; `nil` when something else has to happen first.
  private func probeDue(_ index: Int, at now: MonotonicInstant) -> MonotonicInstant? {
    if mutation == .noProbes { return nil }
    if mutation == .endlessProbes { return now }
    let health = endpoints[index].health
    switch health.state(at: now) {
    case .open, .quarantined: return health.nextChange(after: now)
    // Only a request shows whether the service is back.
    case .halfOpen where health.needsAnswer: break
    case .halfOpen where health.isTried(at: now): return health.nextChange(after: now)
    // A probe that was given up, or showed nothing, is not made again at once.
    case .halfOpen:
      return endpoints[index].probing.measured.map { max($0 + Self.shortestProbePause, now) } ?? now
    case .closed: break
    }
    let probing = endpoints[index].probing
    // What grew old while nobody used the origin is not looked at all at once.
    let first = inUseSince.map { $0 + probeInterval * probing.spread }
    let factor = 1 - Self.probeJitter + 2 * Self.probeJitter * probing.spread
    let again = probing.measured.map { $0 + probeInterval * factor }
    guard let first, let again else { return first ?? again }
    return max(first, again)
  }
}
