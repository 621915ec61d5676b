package import FoundationEssentials
package import NetOptCore

extension RoutePlanner {
  /// What has been learned of the list's endpoints, to be kept for the next run. Endpoints that failed of late, and those
  /// with a wrong certificate, are left out.
  ///
  /// - Parameters:
  ///   - now: the present moment.
  ///   - date: the same moment by the calendar.
  package func history(at now: MonotonicInstant, date: Date) -> RouteHistory {
    let known = hosts.compactMap { $0.history(at: now, date: date) }
    return RouteHistory(
      hosts: known.sorted { ($0.origin.host, $0.origin.port) < ($1.origin.host, $1.origin.port) })
  }

  /// Whether a request was ever planned along the list.
  package var isUsed: Bool { hosts.contains { $0.lastUsed != nil } }

  /// Takes over what was learned in an earlier run, of endpoints of which nothing is known yet. What the list does not have
  /// is passed over.
  ///
  /// - Returns: the hosts of which something is known now that was not before.
  package mutating func adopt(_ history: RouteHistory, at now: MonotonicInstant, date: Date) -> Set<String> {
    var adopted: Set<String> = []
    for host in history.hosts {
      guard let place = listedPlace(of: host.origin) else { continue }
      if hosts[place].adopt(host, at: now, date: date) { adopted.insert(host.origin.host) }
    }
    return adopted
  }

  /// Forgets what was learned of endpoints and answers: it belongs to a network that this machine is not in any more. What is
  /// known of the servers themselves, such as their version of HTTP, stays.
  package mutating func networkChanged(at now: MonotonicInstant) {
    for place in hosts.indices {
      var routes = self.routes(to: hosts[place].origin)
      routes.keep(whatIsUniversalOf: hosts[place], at: now)
      hosts[place] = routes
    }
    network = LocalNetwork()
  }
}

extension HostRoutes {
  /// What is known of the list's endpoints; `nil` when that is nothing.
  fileprivate func history(at now: MonotonicInstant, date: Date) -> RouteHistory.Host? {
    let known = endpoints.compactMap { endpoint -> RouteHistory.Endpoint? in
      let health = endpoint.health
      guard health.isClear, health.ready != nil || health.roundTrip != nil else { return nil }
      return RouteHistory.Endpoint(
        endpoint.listed.address, ready: health.ready?.history, roundTrip: health.roundTrip?.history)
    }
    guard !known.isEmpty else { return nil }
    let leader = leader.map { endpoints[$0].listed.address }
    return RouteHistory.Host(origin, learned: date, leader: leader, endpoints: known)
  }

  /// - Returns: whether anything was of use.
  fileprivate mutating func adopt(
    _ history: RouteHistory.Host, at now: MonotonicInstant, date: Date
  ) -> Bool {
    let seconds = date.timeIntervalSince(history.learned)
    let age = seconds > 0 ? Duration.seconds(min(seconds, 1e9)) : .zero
    var isOfUse = false
    for old in history.endpoints {
      guard let index = index(of: old.address) else { continue }
      let isNews = endpoints[index].health.adopt(
        ready: old.ready.flatMap(RoundTripEstimate.init),
        roundTrip: old.roundTrip.flatMap(RoundTripEstimate.init), measured: now + (.zero - age))
      isOfUse = isOfUse || isNews
    }
    guard isOfUse else { return false }
    reassessAll(at: now)
    if leader == nil { leader = history.leader.flatMap(index(of:)) }
    return true
  }
}

extension RoundTripEstimate {
  /// The estimate as a value that is kept.
  fileprivate var history: RouteHistory.Estimate {
    RouteHistory.Estimate(smoothed: smoothed, variation: variation)
  }

  /// The estimate that was kept; `nil` when it makes no sense.
  fileprivate init?(_ history: RouteHistory.Estimate) {
    self.init(smoothed: history.smoothed, variation: history.variation)
  }
}
