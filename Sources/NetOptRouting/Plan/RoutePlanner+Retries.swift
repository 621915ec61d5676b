package import NetOptCore

extension RoutePlanner {
  /// The shortest duration of another attempt of a call: the shortest round trip that was measured with any
  /// address of the origin, by a TCP handshake or an ICMP echo request. Penalties and slow responses do not
  /// count.
  ///
  /// - Parameters:
  ///   - plan: the plan of the previous attempt.
  ///   - avoided: the addresses that the new attempt tries last.
  /// - Returns: zero when the attempt may be faster than every measurement. This is so when the attempt
  ///   begins with DNS or a proxy, or when an address of the plan was never measured.
  package func leastAttempt(after plan: RoutePlan, avoiding avoided: [IPAddress]) -> Duration {
    guard let routes = routes(known: plan.origin),
      plan.avoiding(RoutePlan.Avoidance(avoided))?.legs.first?.address != nil,
      plan.legs.compactMap(\.address).allSatisfy({ routes.health(of: $0)?.leastRoundTrip != nil })
    else { return .zero }
    let times =
      routes.endpoints.compactMap(\.health.leastRoundTrip)
      + routes.dnsAddresses.compactMap(\.health.leastRoundTrip)
    return .nanoseconds(times.min() ?? 0)
  }
}
