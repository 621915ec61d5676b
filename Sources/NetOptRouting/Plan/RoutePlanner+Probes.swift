package import NetOptCore

/// A listed endpoint that should be probed now.
package struct DueProbe: Hashable, Sendable {
  /// The origin that the endpoint serves.
  package let origin: Origin
  /// The endpoint's address.
  package let address: IPAddress
  /// Whether the pool keeps the probe's connection for requests. It keeps connections to the endpoint that
  /// requests try first, and to every endpoint with the policy `balanced` or when no endpoint is usable.
  /// Other connections would only displace connections that requests use. False for a certificate check.
  package let keepsConnection: Bool
  /// Whether the probe checks a certificate that was wrong. Such a probe makes a TLS handshake on a new
  /// connection, whatever the probe method for other endpoints is.
  package let checksCertificate: Bool
}

extension RoutePlanner {
  /// The shortest time between two routine probes, whatever the number of endpoints in use.
  static let routineProbeSpacing = Duration.milliseconds(200)

  /// Returns the probes that are due now, and counts them as made. Only origins in use are probed: those for
  /// which a plan was made in the last 5 minutes.
  ///
  /// - The one attempt of a half-open circuit breaker is due at once, if the last failure was that the
  ///   endpoint was unreachable. The probe takes this attempt, so that no request takes it. After any other
  ///   failure only a response shows that the endpoint works again, so a request makes the attempt.
  /// - A check of a wrong certificate is due after waits that double from 1 s to 60 s.
  /// - A routine probe of any other endpoint is due every few minutes, with jitter, and less often in a long
  ///   list. On average, an origin gets at most one routine probe every 2 s. All origins together get at most
  ///   5 per second. The endpoint whose probe has been due longest comes first. A request that measures an
  ///   endpoint postpones the endpoint's routine probe.
  ///
  /// While the planner suspects this machine's network, it hands out only probes of one endpoint. The pauses
  /// between these probes double from 1 s to 60 s.
  ///
  /// The caller must pass the result of each probe to `record(probe:of:for:from:at:)`, even if the probe was
  /// cancelled: the circuit breaker of a half-open endpoint waits for the result. The prober does not pass the
  /// results of ICMP echo requests to that method, so a due probe must not use ICMP.
  ///
  /// - Returns: the probes. An endpoint is due again only when its interval is over.
  package mutating func dueProbes(at now: MonotonicInstant) -> [DueProbe] {
    var due: [DueProbe] = []
    if suspectsNetwork(at: now) {
      guard network.takeProbe(at: now), let hostIndex = lastUsedHostIndex(at: now) else { return [] }
      return [hosts[hostIndex].dueProbe(hosts[hostIndex].networkProbeIndex)]
    }
    for hostIndex in hosts.indices {
      guard let attempt = hosts[hostIndex].nextProbes(at: now)?.attempt, attempt <= now else { continue }
      for index in hosts[hostIndex].takeDueAttempts(at: now, using: &random) {
        due.append(hosts[hostIndex].dueProbe(index))
      }
    }
    if let probe = takeDueRoutineProbe(at: now) { due.append(probe) }
    return due
  }

  /// The next moment at which to call `dueProbes(at:)`, never before `now`. `nil` when no origin is in use. A
  /// later plan, failure or probe may make a probe due earlier.
  package mutating func nextProbe(after now: MonotonicInstant) -> MonotonicInstant? {
    var attempt: MonotonicInstant?
    var routine: MonotonicInstant?
    for hostIndex in hosts.indices {
      guard let due = hosts[hostIndex].nextProbes(at: now) else { continue }
      if let moment = due.attempt { attempt = min(attempt ?? moment, moment) }
      if let moment = due.routine?.due { routine = min(routine ?? moment, moment) }
    }
    if let nextRoutineProbe { routine = routine.map { max($0, nextRoutineProbe) } }
    guard let next = [attempt, routine].compactMap(\.self).min() else { return nil }
    return max(suspectsNetwork(at: now) ? network.nextProbe ?? next : next, now)
  }

  /// Takes the routine probe that has been due longest, unless the last routine probe was taken less than
  /// `routineProbeSpacing` ago.
  private mutating func takeDueRoutineProbe(at now: MonotonicInstant) -> DueProbe? {
    if let nextRoutineProbe, now < nextRoutineProbe { return nil }
    var first: (hostIndex: Int, index: Int, due: MonotonicInstant)?
    for hostIndex in hosts.indices {
      guard let routine = hosts[hostIndex].nextProbes(at: now)?.routine, routine.due <= now else { continue }
      if first.map({ routine.due < $0.due }) ?? true {
        first = (hostIndex, routine.index, routine.due)
      }
    }
    guard let (hostIndex, index, _) = first else { return nil }
    nextRoutineProbe = now + Self.routineProbeSpacing
    hosts[hostIndex].noteMeasured(index, at: now, using: &random)
    return hosts[hostIndex].dueProbe(index)
  }

  /// The names of the listed hosts whose origins are in use: a plan for them was made in the last 5 minutes.
  package func hostsInUse(at now: MonotonicInstant) -> Set<String> {
    Set(hosts.lazy.filter { $0.isInUse(at: now) && !$0.endpoints.isEmpty }.map(\.origin.host))
  }

  /// The index in `hosts` of the origin that was used last. A probe of its first endpoint shows whether this
  /// machine's network works again.
  private func lastUsedHostIndex(at now: MonotonicInstant) -> Int? {
    let usable = hosts.indices.filter { hosts[$0].isInUse(at: now) && !hosts[$0].endpoints.isEmpty }
    return usable.max { hosts[$0].lastUsed ?? now < hosts[$1].lastUsed ?? now }
  }
}
