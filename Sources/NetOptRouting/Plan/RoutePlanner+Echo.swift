package import NetOptCore

extension RoutePlanner {
  /// Learns a round-trip time that an ICMP echo request measured. The time shows how far away an endpoint is,
  /// but not whether the endpoint works.
  package mutating func record(
    roundTrip: Duration, of address: IPAddress, for origin: Origin, at now: MonotonicInstant
  ) {
    hosts[begin(origin)].update(address, at: now) { health in
      health.measured(connect: roundTrip, at: now)
      return true
    }
  }
}
