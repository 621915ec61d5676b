package import NetOptCore

/// An endpoint of the list that should be probed now.
package struct DueProbe: Hashable, Sendable {
  /// For which origin.
  package let origin: Origin
  /// Its address.
  package let address: IPAddress
  /// Whether its connection is kept for requests: where they go there, or to nobody yet. Others would only take the place of
  /// those in use.
  package let isKept: Bool
  /// Whether it is to verify a certificate that was wrong: by a TLS handshake on a new connection, whatever else
  /// endpoints are probed with.
  package let checksCertificate: Bool
}

extension RoutePlanner {
  /// The time between two looks at endpoints against which nothing is held, however many are in use.
  static let lookSpacing = Duration.milliseconds(200)

  /// Takes the probes that are due now, of origins that are in use: for which a plan was made in the last five
  /// minutes. A half-open circuit is due at once, and its one attempt is taken by the probe; so is a certificate that was
  /// wrong, after waits that double from one second to a minute; every other endpoint is
  /// due every few minutes, with jitter, or less often in a long list: an origin is probed at most every two seconds, and all
  /// of them together five times a second, the one that has waited longest first. Endpoints whose connections requests have
  /// measured meanwhile are passed over.
  ///
  /// While the network is suspected there is one probe in all, after pauses that double from one second to a minute.
  ///
  /// What comes out of a probe goes to `record(probe:of:for:at:)`, also when it was cancelled.
  ///
  /// - Returns: each once; it is not due again before its interval is over.
  package mutating func dueProbes(at now: MonotonicInstant) -> [DueProbe] {
    var due: [DueProbe] = []
    if suspectsNetwork(at: now) {
      guard network.takeProbe(at: now), let place = anyInUse(at: now) else { return [] }
      return [hosts[place].dueProbe(hosts[place].networkWitness)]
    }
    for place in hosts.indices {
      guard let attempt = hosts[place].nextProbes(at: now)?.attempt, attempt <= now else { continue }
      for index in hosts[place].takeDueAttempts(at: now, using: &random) {
        due.append(hosts[place].dueProbe(index))
      }
    }
    if let look = takeLook(at: now) { due.append(look) }
    return due
  }

  /// When `dueProbes(at:)` is worth asking next: never before `now`, and `nil` when no origin is in use. A later plan
  /// may make it earlier.
  package mutating func nextProbe(after now: MonotonicInstant) -> MonotonicInstant? {
    var attempt: MonotonicInstant?
    var look: MonotonicInstant?
    for place in hosts.indices {
      guard let due = hosts[place].nextProbes(at: now) else { continue }
      if let moment = due.attempt { attempt = min(attempt ?? moment, moment) }
      if let moment = due.look?.due { look = min(look ?? moment, moment) }
    }
    if let nextLook { look = look.map { max($0, nextLook) } }
    guard let next = [attempt, look].compactMap(\.self).min() else { return nil }
    return max(suspectsNetwork(at: now) ? network.nextProbe ?? next : next, now)
  }

  /// Takes the look that is overdue most, unless the last one was a moment ago.
  private mutating func takeLook(at now: MonotonicInstant) -> DueProbe? {
    if let nextLook, now < nextLook { return nil }
    var first: (place: Int, index: Int, due: MonotonicInstant)?
    for place in hosts.indices {
      guard let look = hosts[place].nextProbes(at: now)?.look, look.due <= now else { continue }
      if first.map({ look.due < $0.due }) ?? true { first = (place, look.index, look.due) }
    }
    guard let (place, index, _) = first else { return nil }
    nextLook = now + Self.lookSpacing
    hosts[place].noteMeasured(index, at: now, using: &random)
    return hosts[place].dueProbe(index)
  }

  /// The names of the list whose origins are in use: for which a plan was made in the last five minutes.
  package func hostsInUse(at now: MonotonicInstant) -> Set<String> {
    Set(hosts.lazy.filter { $0.isInUse(at: now) && !$0.endpoints.isEmpty }.map(\.origin.host))
  }

  /// An origin whose endpoint in front shows whether the network is back: the one that was used last.
  private func anyInUse(at now: MonotonicInstant) -> Int? {
    let usable = hosts.indices.filter { hosts[$0].isInUse(at: now) && !hosts[$0].endpoints.isEmpty }
    return usable.max { hosts[$0].lastUsed ?? now < hosts[$1].lastUsed ?? now }
  }
}
