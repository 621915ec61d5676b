package import NetOptCore

extension RoutePlanner {
  /// Learns a round trip that an ICMP echo request measured. It shows how far away an endpoint is, and not
  /// whether the endpoint works.
  package mutating func record(
    roundTrip: Duration, of address: IPAddress, for origin: Origin, at now: MonotonicInstant
  ) {
    hosts[begin(origin)].update(address, at: now) { health in
      health.measured(connect: roundTrip, at: now)
      return true
    }
  }
}
