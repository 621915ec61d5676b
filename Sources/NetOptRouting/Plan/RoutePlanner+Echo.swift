package import NetOptCore

extension RoutePlanner {
  /// Learns the time of a round trip that was measured without a connection, by an echo request of ICMP: how far away an
  /// endpoint is, and nothing of whether it works.
  package mutating func record(
    roundTrip: Duration, of address: IPAddress, for origin: Origin, at now: MonotonicInstant
  ) {
    hosts[begin(origin)].update(address, at: now) { health in
      health.measured(connect: roundTrip, at: now)
      return true
    }
  }
}
