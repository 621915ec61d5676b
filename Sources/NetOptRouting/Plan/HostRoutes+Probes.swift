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

/// What probe of an endpoint comes next, and when.
private enum NextProbe {
  /// The one attempt of a half-open circuit or the check of a certificate, or the next moment at which there may be one.
  case attempt(MonotonicInstant)
  /// One to keep what is known from growing old. No request waits to hear of it.
  case look(MonotonicInstant)
}

/// When the next probes of an origin's endpoints are due.
struct NextProbes: Sendable {
  /// The first attempt of a half-open circuit or check of a certificate, or the next moment at which there may be one.
  var attempt: MonotonicInstant?
  /// The endpoint that is to be looked at next.
  var look: (index: Int, due: MonotonicInstant)?
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
    if !isInUse(at: now) {
      inUseSince = now
      nextProbes = nil
    }
    lastUsed = now
  }

  /// Whether the client sends requests to the origin.
  func isInUse(at now: MonotonicInstant) -> Bool {
    lastUsed.map { now < $0 + Self.useMemory } ?? false
  }

  /// When the next probes of its endpoints are due, as far as is known; `nil` when the origin is not in use. Worked out when
  /// something has changed: whoever changes an endpoint's health or times forgets `nextProbes`.
  mutating func nextProbes(at now: MonotonicInstant) -> NextProbes? {
    guard isInUse(at: now) else { return nil }
    if let nextProbes { return nextProbes }
    var due = NextProbes()
    for index in endpoints.indices {
      switch nextProbe(of: index, at: now) {
      case .attempt(let moment): due.attempt = min(due.attempt ?? moment, moment)
      case .look(let moment):
        if due.look.map({ moment < $0.due }) ?? true { due.look = (index, moment) }
      case nil: break
      }
    }
    nextProbes = due
    return due
  }

  /// Takes the one attempt of each half-open endpoint, and each check of a certificate that is due, for a probe.
  ///
  /// - Returns: the endpoints' indices.
  mutating func takeDueAttempts(at now: MonotonicInstant, using random: inout SplitMix64) -> [Int] {
    var due: [Int] = []
    for index in endpoints.indices {
      guard case .attempt(let moment) = nextProbe(of: index, at: now), moment <= now else { continue }
      due.append(index)
      noteMeasured(index, at: now, using: &random)
      take(index, byProbe: true, at: now)
    }
    // What was due by the clock alone may not be due any more.
    nextProbes = nil
    return due
  }

  /// The endpoint that requests go to, as far as there is one.
  var front: Int? { leader ?? ranking.entries.first?.index }

  /// The endpoint that shows whether the network is back: the one in front, unless its certificate was wrong.
  var networkWitness: Int {
    let front = front ?? 0
    guard endpoints[front].health.isQuarantined else { return front }
    return endpoints.firstIndex { !$0.health.isQuarantined } ?? front
  }

  /// A probe of an endpoint.
  func dueProbe(_ index: Int) -> DueProbe {
    let isCheck = endpoints[index].health.isQuarantined
    // A pooled connection shows what the certificate was like before.
    let isKept = !isCheck && (policy == .balanced || front == nil || front == index)
    return DueProbe(
      origin: origin, address: addresses[index], isKept: isKept, checksCertificate: isCheck)
  }

  /// An endpoint's connections were measured, or are about to be.
  mutating func noteMeasured(_ index: Int, at now: MonotonicInstant, using random: inout SplitMix64) {
    nextProbes = nil
    endpoints[index].probing.measured = now
    endpoints[index].probing.spread = Double.random(in: 0..<1, using: &random)
  }

  /// When an endpoint's next probe is due; `nil` when something else has to happen first.
  private func nextProbe(of index: Int, at now: MonotonicInstant) -> NextProbe? {
    let health = endpoints[index].health
    if let check = health.certificateCheck(at: now) { return .attempt(check) }
    switch health.state(at: now) {
    case .open, .quarantined: return health.nextChange(after: now).map { .attempt($0) }
    // Only a request shows whether the service is back.
    case .halfOpen where health.needsAnswer: break
    case .halfOpen where health.isTried(at: now): return health.nextChange(after: now).map { .attempt($0) }
    // A probe that was given up, or showed nothing, is not made again at once.
    case .halfOpen:
      return .attempt(endpoints[index].probing.measured.map { max($0 + Self.shortestProbePause, now) } ?? now)
    case .closed: break
    }
    let probing = endpoints[index].probing
    // What grew old while nobody used the origin is not looked at all at once.
    let first = inUseSince.map { $0 + probeInterval * probing.spread }
    let factor = 1 - Self.probeJitter + 2 * Self.probeJitter * probing.spread
    let again = probing.measured.map { $0 + probeInterval * factor }
    guard let first, let again else { return (first ?? again).map { .look($0) } }
    return .look(max(first, again))
  }
}
