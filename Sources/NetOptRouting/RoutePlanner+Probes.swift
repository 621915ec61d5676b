public import NetOptCore

/// An endpoint of the list that should be probed now.
public struct DueProbe: Hashable, Sendable {
  /// For which origin.
  public let origin: Origin
  /// Its address.
  public let address: IPAddress
}

extension RoutePlanner {
  /// Takes the probes that are due now, of origins that are in use: for which a plan was made in the last five
  /// minutes. A half-open circuit is due at once, and its one attempt is taken by the probe; every other endpoint is
  /// due every few minutes, with jitter, or less often in a long list, so that an origin is probed at most every two
  /// seconds. Endpoints whose connections requests have measured meanwhile are passed over.
  ///
  /// While the network is suspected there is one probe in all, after pauses that double from one second to a minute.
  ///
  /// What comes out of a probe goes to `record(probe:of:for:at:)`, also when it was cancelled.
  ///
  /// - Returns: each once; it is not due again before its interval is over.
  public mutating func dueProbes(at now: MonotonicInstant) -> [DueProbe] {
    var due: [DueProbe] = []
    if suspectsNetwork(at: now) {
      guard network.takeProbe(at: now), let (place, address) = anyInUse(at: now) else { return [] }
      return [DueProbe(origin: hosts[place].origin, address: address)]
    }
    for place in hosts.indices {
      let origin = hosts[place].origin
      due += hosts[place].takeDueProbes(at: now, using: &random).map { DueProbe(origin: origin, address: $0) }
    }
    return due
  }

  /// When `dueProbes(at:)` is worth asking next: never before `now`, and `nil` when no origin is in use. A later plan
  /// may make it earlier.
  public func nextProbe(after now: MonotonicInstant) -> MonotonicInstant? {
    let next = hosts.compactMap { $0.nextProbe(at: now) }.min()
    guard let next else { return nil }
    return max(suspectsNetwork(at: now) ? network.nextProbe ?? next : next, now)
  }

  /// The names of the list whose origins are in use: for which a plan was made in the last five minutes.
  public func hostsInUse(at now: MonotonicInstant) -> Set<String> {
    Set(hosts.lazy.filter { $0.isInUse(at: now) && !$0.endpoints.isEmpty }.map(\.origin.host))
  }

  /// An endpoint that shows whether the network is back: the one in use of an origin that is in use.
  private func anyInUse(at now: MonotonicInstant) -> (place: Int, address: IPAddress)? {
    let usable = hosts.indices.filter { hosts[$0].isInUse(at: now) && !hosts[$0].endpoints.isEmpty }
    guard let place = usable.max(by: { hosts[$0].lastUsed ?? now < hosts[$1].lastUsed ?? now }) else {
      return nil
    }
    let index = hosts[place].leader ?? hosts[place].ranking.entries.first?.index ?? 0
    return (place, hosts[place].addresses[index])
  }
}
