package import NetOptCore

extension RoutePlanner {
  /// Plans with another list from now on.
  ///
  /// What was learnt of an endpoint stays known as long as its address serves the same host: its times, its circuit,
  /// its quarantine. Of an endpoint that is no longer listed it is kept as of an address from DNS, and the other way
  /// round. Plans that were made before stay as they are, and what becomes of them is recorded as ever.
  ///
  /// - Parameters:
  ///   - list: the list, or `nil` to plan over DNS alone.
  ///   - now: the present moment.
  package mutating func adopt(_ list: EndpointList?, at now: MonotonicInstant) {
    self.list = list
    for place in hosts.indices {
      let listed = entry(of: hosts[place].origin)?.endpoints ?? []
      hosts[place] = hosts[place].listing(listed, configuration: configuration, seed: seed, at: now)
    }
    unlisted = hosts.count { $0.endpoints.isEmpty }
    if unlisted > Self.mostUnlisted { forgetUnlisted() }
    noteSilent()
  }
}

extension HostRoutes {
  /// The same origin with other endpoints in the list, and with what is known of all addresses.
  func listing(
    _ listed: [ListedEndpoint], configuration: RoutingConfiguration, seed: UInt64, at now: MonotonicInstant
  ) -> HostRoutes {
    var routes = HostRoutes(
      origin, listed: listed, configuration: configuration, seed: seed)
    for index in routes.endpoints.indices {
      let address = routes.endpoints[index].listed.address
      if let old = self.index(of: address) {
        routes.endpoints[index].inFlight = endpoints[old].inFlight
        routes.endpoints[index].probing = endpoints[old].probing
      }
      if let health = health(of: address) { routes.endpoints[index].health = health }
    }
    routes.reassessAll(at: now)
    routes.answers = answers.filter { routes.index(of: $0.address) == nil }
    for endpoint in endpoints where routes.index(of: endpoint.listed.address) == nil {
      guard routes.answers.count < Self.mostAnswers else { break }
      var health = endpoint.health
      _ = health.clearSilence()
      routes.answers.append(Answer(address: endpoint.listed.address, health: health, heardOf: now))
    }
    routes.lastAnswer = lastAnswer
    routes.usual = usual
    // The one in use stays in use: its connections are open.
    if let leader {
      let address = endpoints[leader].listed.address
      routes.leader = routes.endpoints.firstIndex { $0.listed.address == address }
    }
    routes.lastUsed = lastUsed
    routes.inUseSince = inUseSince
    routes.speaksHTTP1 = speaksHTTP1
    return routes
  }
}
