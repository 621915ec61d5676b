import NetOptCore

/// What decides when an endpoint's next routine probe is due, besides the use of its origin.
struct ProbeTimes: Sendable {
  /// When a connection to the endpoint was last measured, or when a probe of the endpoint was last handed
  /// out; `nil` if neither has happened in this network.
  var measured: MonotonicInstant?
  /// A random fraction from 0 to 1, from which the jitter of the next routine probe is computed. It is drawn
  /// anew with each measurement, so that clients and endpoints do not probe in step.
  var spread: Double

  init(_ random: inout SplitMix64) {
    spread = Double.random(in: 0..<1, using: &random)
  }
}

/// The kind of an endpoint's next probe, and when it is due.
private enum NextProbe {
  /// The one attempt of a half-open circuit breaker, or a certificate check. If the attempt is
  /// free, the moment is when the probe is due. Otherwise it is when the endpoint's state next changes by
  /// itself.
  case attempt(MonotonicInstant)
  /// A routine probe, which keeps the measurements of an endpoint fresh. No request waits for its result. The
  /// endpoint's circuit breaker is closed, or it is half-open and only a response can show that the endpoint
  /// works again. The moment is when the probe is due.
  case routine(MonotonicInstant)
}

/// When the next probes of an origin's endpoints are due.
struct NextProbes: Sendable {
  /// When the first of all attempts of half-open circuit breakers and certificate checks is due, or may
  /// become due; `nil` without one.
  var attempt: MonotonicInstant?
  /// The index of the endpoint that the next routine probe measures, and when the probe is due. `nil` when no
  /// endpoint has a routine probe to come.
  var routine: (index: Int, due: MonotonicInstant)?
}

extension HostRoutes {
  /// How long after its last plan an origin counts as in use.
  static let useMemory = Duration.seconds(300)
  /// The shortest interval between two routine probes of one endpoint, before jitter.
  static let shortestProbeInterval = Duration.seconds(180)
  /// The minimum average time between two routine probes of one origin. Because of it, the endpoints of a
  /// long list are probed less often.
  static let probeSpacing = Duration.seconds(2)
  /// The maximum jitter of the interval in both directions, as a fraction of the interval.
  static let probeJitter = 0.25

  /// The interval between two routine probes of one endpoint, before jitter: 180 s, or 2 s for each
  /// endpoint of the origin when that is longer.
  var probeInterval: Duration { max(Self.shortestProbeInterval, Self.probeSpacing * endpoints.count) }

  /// The shortest time between two probes of a half-open endpoint, when the first probe was cancelled or was
  /// only a measurement.
  private static let shortestProbePause = Duration.seconds(1)

  /// Notes that a request to the origin is planned, so that the origin is in use.
  mutating func used(at now: MonotonicInstant) {
    if !isInUse(at: now) {
      inUseSince = now
      nextProbes = nil
    }
    lastUsed = now
  }

  /// Whether the origin is in use: a plan for it was made within the last 5 minutes (`useMemory`).
  func isInUse(at now: MonotonicInstant) -> Bool {
    lastUsed.map { now < $0 + Self.useMemory } ?? false
  }

  /// When the next probes of the origin's endpoints are due; `nil` when the origin is not in use. The result
  /// is kept in `nextProbes`. Code that changes the health or the probe times of an endpoint must set
  /// `nextProbes` to `nil`.
  mutating func nextProbes(at now: MonotonicInstant) -> NextProbes? {
    guard isInUse(at: now) else { return nil }
    if let nextProbes { return nextProbes }
    var due = NextProbes()
    for index in endpoints.indices {
      switch nextProbe(of: index, at: now) {
      case .attempt(let moment): due.attempt = min(due.attempt ?? moment, moment)
      case .routine(let moment):
        if due.routine.map({ moment < $0.due }) ?? true { due.routine = (index, moment) }
      case nil: break
      }
    }
    nextProbes = due
    return due
  }

  /// Takes the attempts that are due, for probes: the one attempt of each half-open endpoint, and the
  /// certificate checks.
  ///
  /// - Returns: the indices of the endpoints to probe.
  mutating func takeDueAttempts(at now: MonotonicInstant, using random: inout SplitMix64) -> [Int] {
    var due: [Int] = []
    for index in endpoints.indices {
      guard case .attempt(let moment) = nextProbe(of: index, at: now), moment <= now else { continue }
      due.append(index)
      noteMeasured(index, at: now, using: &random)
      take(index, byProbe: true, at: now)
    }
    // The kept result may count probes as due that are no longer due.
    nextProbes = nil
    return due
  }

  /// The index of the endpoint that requests try first: the endpoint in use or, without one, the first in the
  /// ranking. `nil` when no endpoint is usable.
  var front: Int? { leader ?? ranking.entries.first?.index }

  /// The index of the endpoint whose probe shows whether the network works again: the first endpoint, unless
  /// it is in quarantine.
  var networkProbeIndex: Int {
    let front = front ?? 0
    guard endpoints[front].health.isQuarantined else { return front }
    return endpoints.firstIndex { !$0.health.isQuarantined } ?? front
  }

  /// Describes a probe of an endpoint for the caller that makes it.
  func dueProbe(_ index: Int) -> DueProbe {
    let isCheck = endpoints[index].health.isQuarantined
    // A certificate check needs a new connection: a pooled one shows the certificate of an earlier handshake.
    let keepsConnection = !isCheck && (policy == .balanced || front == nil || front == index)
    return DueProbe(
      origin: origin, address: addresses[index], keepsConnection: keepsConnection, checksCertificate: isCheck)
  }

  /// Notes that a connection to an endpoint was measured, or that a probe is about to measure one. The
  /// endpoint's next routine probe is then due an interval later.
  mutating func noteMeasured(_ index: Int, at now: MonotonicInstant, using random: inout SplitMix64) {
    nextProbes = nil
    endpoints[index].probing.measured = now
    endpoints[index].probing.spread = Double.random(in: 0..<1, using: &random)
  }

  /// The kind of an endpoint's next probe, and when it is due. `nil` when another event has to come before a
  /// probe.
  private func nextProbe(of index: Int, at now: MonotonicInstant) -> NextProbe? {
    let health = endpoints[index].health
    if let check = health.certificateCheck(at: now) { return .attempt(check) }
    switch health.state(at: now) {
    case .open, .quarantined: return health.nextChange(after: now).map { .attempt($0) }
    // Only a request shows whether the service works again.
    case .halfOpen where health.needsAnswer: break
    case .halfOpen where health.isAttemptUnderWay(at: now):
      return health.nextChange(after: now).map { .attempt($0) }
    // A probe that was cancelled or was only a measurement is repeated after `shortestProbePause` at the
    // earliest.
    case .halfOpen:
      return .attempt(endpoints[index].probing.measured.map { max($0 + Self.shortestProbePause, now) } ?? now)
    case .closed: break
    }
    let probing = endpoints[index].probing
    // When the origin comes into use again, many endpoints are due. Their routine probes spread over one
    // interval.
    let first = inUseSince.map { $0 + probeInterval * probing.spread }
    let factor = 1 - Self.probeJitter + 2 * Self.probeJitter * probing.spread
    let again = probing.measured.map { $0 + probeInterval * factor }
    guard let first, let again else { return (first ?? again).map { .routine($0) } }
    return .routine(max(first, again))
  }
}
