package import FoundationEssentials
package import NetOptCore

extension RoutePlanner {
  /// The measurements of the listed endpoints, to be saved for a later run. Omits endpoints that have failed
  /// since their last success, that have a wrong certificate or that are suspected of being silent.
  ///
  /// - Parameters:
  ///   - now: the present moment.
  ///   - date: the same moment as a calendar date.
  package func history(at now: MonotonicInstant, date: Date) -> RouteHistory {
    let known = hosts.compactMap { $0.history(at: now, date: date) }
    return RouteHistory(
      hosts: known.sorted { ($0.origin.host, $0.origin.port) < ($1.origin.host, $1.origin.port) })
  }

  /// Whether a plan with the list was ever made that counts as use of its origin.
  package var isUsed: Bool { hosts.contains { $0.lastUsed != nil } }

  /// Adopts the history of an earlier run, or of an earlier stay in this network, for endpoints without
  /// measurements. Ignores endpoints outside the list.
  ///
  /// - Returns: the names of the hosts for which the planner adopted a value.
  package mutating func adopt(_ history: RouteHistory, at now: MonotonicInstant, date: Date) -> Set<String> {
    var adopted: Set<String> = []
    for host in history.hosts {
      guard let hostIndex = listedHostIndex(of: host.origin) else { continue }
      if hosts[hostIndex].adopt(host, at: now, date: date) { adopted.insert(host.origin.host) }
    }
    return adopted
  }

  /// Forgets the health of endpoints and DNS addresses: it belongs to the network that this machine has left.
  /// Keeps facts about the servers themselves, such as their HTTP version.
  package mutating func networkChanged(at now: MonotonicInstant) {
    for hostIndex in hosts.indices {
      var routes = self.routes(to: hosts[hostIndex].origin)
      routes.keepNetworkIndependentState(of: hosts[hostIndex], at: now)
      hosts[hostIndex] = routes
    }
    network = LocalNetwork()
  }
}

extension HostRoutes {
  /// The history of the listed endpoints; `nil` when no healthy endpoint has measurements.
  fileprivate func history(at now: MonotonicInstant, date: Date) -> RouteHistory.Host? {
    let known = endpoints.compactMap { endpoint -> RouteHistory.Endpoint? in
      let health = endpoint.health
      guard health.isHealthy, health.ready != nil || health.roundTrip != nil else { return nil }
      return RouteHistory.Endpoint(
        endpoint.listed.address, ready: health.ready?.history, roundTrip: health.roundTrip?.history)
    }
    guard !known.isEmpty else { return nil }
    let leader = leader.map { endpoints[$0].listed.address }
    return RouteHistory.Host(origin, learned: date, leader: leader, endpoints: known)
  }

  /// Adopts the values of an earlier run for the endpoints without measurements.
  ///
  /// - Returns: whether an endpoint adopted a value.
  fileprivate mutating func adopt(
    _ history: RouteHistory.Host, at now: MonotonicInstant, date: Date
  ) -> Bool {
    let seconds = date.timeIntervalSince(history.learned)
    let age = seconds > 0 ? Duration.seconds(min(seconds, 1e9)) : .zero
    var hasAdopted = false
    for old in history.endpoints {
      guard let index = index(of: old.address) else { continue }
      let isAdopted = endpoints[index].health.adopt(
        ready: old.ready.flatMap(RoundTripEstimate.init),
        roundTrip: old.roundTrip.flatMap(RoundTripEstimate.init), measured: now + (.zero - age))
      hasAdopted = hasAdopted || isAdopted
    }
    guard hasAdopted else { return false }
    reassessAll(at: now)
    if leader == nil { leader = history.leader.flatMap(index(of:)) }
    return true
  }
}

extension RoundTripEstimate {
  /// The estimate in the form that a history stores.
  fileprivate var history: RouteHistory.Estimate {
    RouteHistory.Estimate(smoothed: smoothed, variation: variation)
  }

  /// Restores a stored estimate; `nil` when its times are out of range.
  fileprivate init?(_ history: RouteHistory.Estimate) {
    self.init(smoothed: history.smoothed, variation: history.variation)
  }
}
