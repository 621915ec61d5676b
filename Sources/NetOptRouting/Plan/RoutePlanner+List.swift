package import NetOptCore

extension RoutePlanner {
  /// Replaces the list for all plans from now on.
  ///
  /// The planner keeps the health of an endpoint (times, circuit breaker, quarantine) as long as its address
  /// serves the same host. When an endpoint leaves the list, its health becomes that of a DNS address. When a
  /// known DNS address enters the list, its health becomes that of an endpoint. Existing plans do not change,
  /// and the planner records their outcomes as usual.
  ///
  /// - Parameters:
  ///   - list: the list, or `nil` to plan with DNS alone.
  ///   - now: the present moment.
  package mutating func adopt(_ list: EndpointList?, at now: MonotonicInstant) {
    self.list = list
    for hostIndex in hosts.indices {
      let listed = entry(of: hosts[hostIndex].origin)?.endpoints ?? []
      hosts[hostIndex] = hosts[hostIndex].listing(listed, configuration: configuration, seed: seed, at: now)
    }
    unlisted = hosts.count { $0.endpoints.isEmpty }
    if unlisted > Self.mostUnlisted { forgetUnlisted() }
    updateSilentHosts()
  }
}

extension HostRoutes {
  /// Returns the state of this origin for a new list. The state keeps the health of all addresses that are in
  /// the new list, and of at most `mostDNSAddresses` others.
  ///
  /// - Parameter listed: the origin's endpoints in the new list.
  func listing(
    _ listed: [ListedEndpoint], configuration: RoutingConfiguration, seed: UInt64, at now: MonotonicInstant
  ) -> HostRoutes {
    var routes = HostRoutes(
      origin, listed: listed, configuration: configuration, seed: seed)
    for index in routes.endpoints.indices {
      let address = routes.endpoints[index].listed.address
      if let old = self.index(of: address) {
        routes.endpoints[index].inFlight = endpoints[old].inFlight
        routes.endpoints[index].counts = endpoints[old].counts
        routes.endpoints[index].probing = endpoints[old].probing
      }
      if let health = health(of: address) { routes.endpoints[index].health = health }
    }
    routes.reassessAll(at: now)
    routes.dnsAddresses = dnsAddresses.filter { routes.index(of: $0.address) == nil }
    for endpoint in endpoints where routes.index(of: endpoint.listed.address) == nil {
      guard routes.dnsAddresses.count < Self.mostDNSAddresses else { break }
      var health = endpoint.health
      _ = health.clearSilence()
      routes.dnsAddresses.append(
        DNSAddress(address: endpoint.listed.address, health: health, lastUpdated: now))
    }
    routes.lastDNSAddress = lastDNSAddress
    routes.usual = usual
    // The endpoint in use stays in use: its connections are open.
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
