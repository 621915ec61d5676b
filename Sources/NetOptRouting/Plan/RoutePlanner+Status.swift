package import NetOptCore

// What callers of the planner ask about listed endpoints.

extension RoutePlanner {
  /// The status of an origin's listed endpoints, in the order of `HostRoutes.statuses`. The counts include
  /// those of the origin with the other scheme.
  package func status(of origin: Origin, at now: MonotonicInstant) -> [EndpointStatus] {
    var statuses = (routes(known: origin) ?? routes(to: origin)).statuses(at: now)
    if let others = routes(known: origin.withOtherScheme) {
      for place in statuses.indices {
        guard let index = others.index(of: statuses[place].endpoint.address) else { continue }
        statuses[place].counts.add(others.endpoints[index].counts)
      }
    }
    return statuses
  }

  /// The origin of a listed host that requests used last. Before the first request it is a guess
  /// (`EndpointList.origin`): the list names no scheme. `nil` when the host is not in the list.
  package func usedOrigin(of host: String) -> Origin? {
    guard let guess = list?.origin(of: host) else { return nil }
    let other = guess.withOtherScheme
    guard let used = routes(known: other)?.lastUsed else { return guess }
    return routes(known: guess)?.lastUsed.map { $0 >= used } ?? false ? guess : other
  }
}

extension Origin {
  /// The same host and port with the other scheme. The list does not tell which one an endpoint serves.
  var withOtherScheme: Origin { Origin(scheme == .https ? .http : .https, host: host, port: port) }
}
