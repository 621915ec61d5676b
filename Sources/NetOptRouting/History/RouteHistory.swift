package import FoundationEssentials
package import NetOptCore

/// How fast the endpoints of hosts were, as values that outlive a planner: it belongs to the network in which it was
/// learned. Of endpoints that failed of late it says nothing.
package struct RouteHistory: Hashable, Sendable {
  /// A smoothed time and its variation (RFC 6298).
  package struct Estimate: Hashable, Sendable {
    /// SRTT.
    package var smoothed: Duration
    /// RTTVAR.
    package var variation: Duration

    /// Makes an estimate.
    package init(smoothed: Duration, variation: Duration) {
      self.smoothed = smoothed
      self.variation = variation
    }
  }

  /// An endpoint of the list.
  package struct Endpoint: Hashable, Sendable {
    /// The address.
    package var address: IPAddress
    /// The time until a request can be sent, TLS included where there is any.
    package var ready: Estimate?
    /// The time of the TCP handshake.
    package var roundTrip: Estimate?

    /// Makes an endpoint.
    package init(_ address: IPAddress, ready: Estimate?, roundTrip: Estimate?) {
      self.address = address
      self.ready = ready
      self.roundTrip = roundTrip
    }
  }

  /// A host of the list.
  package struct Host: Hashable, Sendable {
    /// What is connected to.
    package var origin: Origin
    /// When this was known.
    package var learned: Date
    /// The endpoint that was in use, if any was.
    package var leader: IPAddress?
    /// The endpoints that were known to work, in the list's order.
    package var endpoints: [Endpoint]

    /// Makes a host.
    package init(_ origin: Origin, learned: Date, leader: IPAddress?, endpoints: [Endpoint]) {
      self.origin = origin
      self.learned = learned
      self.leader = leader
      self.endpoints = endpoints
    }
  }

  /// How long a history is of use.
  package static let lifetime = Duration.seconds(86_400)

  /// The hosts, each once, in the order of their names.
  package var hosts: [Host]

  /// Makes a history.
  package init(hosts: [Host] = []) { self.hosts = hosts }

  /// What is of use at a moment: what is older than `lifetime`, or from the future, is left out.
  package func current(at date: Date) -> RouteHistory {
    let oldest = date.addingTimeInterval(-Double(Self.lifetime.components.seconds))
    // A clock that is set back a little must not cost everything.
    let latest = date.addingTimeInterval(60)
    return RouteHistory(hosts: hosts.filter { $0.learned > oldest && $0.learned < latest })
  }

  /// This history with those hosts of another one that it does not have. What it says of a host is as old as in the other one
  /// when it says nothing else.
  package func merged(with other: RouteHistory) -> RouteHistory {
    var merged = hosts.map { host in
      guard let old = other.hosts.first(where: { $0.origin == host.origin }) else { return host }
      var host = host
      if old.leader == host.leader, old.endpoints == host.endpoints { host.learned = old.learned }
      return host
    }
    let own = Set(hosts.map(\.origin))
    merged += other.hosts.filter { !own.contains($0.origin) }
    return RouteHistory(
      hosts: merged.sorted { ($0.origin.host, $0.origin.port) < ($1.origin.host, $1.origin.port) })
  }
}
