package import FoundationEssentials
package import NetOptCore

/// The measured speed of the endpoints of hosts, as values that outlive a planner. A history belongs to the
/// network in which it was learned. It says nothing about endpoints that failed recently.
package struct RouteHistory: Hashable, Sendable {
  /// A smoothed time and its variation (RFC 6298).
  package struct Estimate: Hashable, Sendable {
    /// The smoothed time (SRTT).
    package var smoothed: Duration
    /// The variation of the time (RTTVAR).
    package var variation: Duration

    /// Makes an estimate.
    package init(smoothed: Duration, variation: Duration) {
      self.smoothed = smoothed
      self.variation = variation
    }
  }

  /// The measured speed of an endpoint of the list.
  package struct Endpoint: Hashable, Sendable {
    /// The address that the list has for the endpoint.
    package var address: IPAddress
    /// The time from the start of a connection attempt until a request can be sent: the TCP handshake and,
    /// for `https`, the TLS handshake. `nil` without a measurement.
    package var ready: Estimate?
    /// The round-trip time, from TCP handshakes and ICMP echo requests. `nil` without a measurement.
    package var roundTrip: Estimate?

    /// Makes an endpoint.
    package init(_ address: IPAddress, ready: Estimate?, roundTrip: Estimate?) {
      self.address = address
      self.ready = ready
      self.roundTrip = roundTrip
    }
  }

  /// The measured speed of the endpoints of a host of the list.
  package struct Host: Hashable, Sendable {
    /// The origin that the endpoints serve: scheme, host and port.
    package var origin: Origin
    /// The date at which the planner exported these values.
    package var learned: Date
    /// The address of the endpoint that was in use; `nil` when no endpoint was.
    package var leader: IPAddress?
    /// The endpoints that were known to work, in the order of the list.
    package var endpoints: [Endpoint]

    /// Makes a host.
    package init(_ origin: Origin, learned: Date, leader: IPAddress?, endpoints: [Endpoint]) {
      self.origin = origin
      self.learned = learned
      self.leader = leader
      self.endpoints = endpoints
    }
  }

  /// How long after `Host.learned` the values of a host are used: one day.
  package static let lifetime = Duration.seconds(86_400)

  /// The hosts, each once, in the order of their names.
  package var hosts: [Host]

  /// Makes a history.
  package init(hosts: [Host] = []) { self.hosts = hosts }

  /// The hosts of the history whose values are still useful at a date. Omits hosts whose values were learned
  /// `lifetime` or longer before, and hosts whose `learned` is 60 s or more in the future.
  package func current(at date: Date) -> RouteHistory {
    let oldest = date.addingTimeInterval(-Double(Self.lifetime.components.seconds))
    // When the clock is set back by up to 60 s, the history stays useful.
    let latest = date.addingTimeInterval(60)
    return RouteHistory(hosts: hosts.filter { $0.learned > oldest && $0.learned < latest })
  }

  /// Combines two histories. The result has each host of this history, and each host that only `other` has.
  /// When both have a host with equal values, the host in the result has the date of `other`, the older
  /// history: the values were learned then.
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
