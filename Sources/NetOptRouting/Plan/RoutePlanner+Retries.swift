package import NetOptCore

extension RoutePlanner {
  /// The least time that another attempt of a call takes: one round trip to the nearest of the origin's addresses, by
  /// the shortest handshake that was measured with any of them. Penalties and slow answers are no part of it.
  ///
  /// - Parameters:
  ///   - plan: of the attempt before.
  ///   - avoided: the addresses that the attempt tries last.
  /// - Returns: zero where the attempt may be faster than anything that was measured: where it begins with DNS or a proxy,
  ///   or where the plan has an address that was never measured.
  package func leastAttempt(after plan: RoutePlan, avoiding avoided: [IPAddress]) -> Duration {
    guard let routes = routes(known: plan.origin),
      plan.avoiding(RoutePlan.Avoidance(avoided))?.legs.first?.address != nil,
      plan.legs.compactMap(\.address).allSatisfy({ routes.health(of: $0)?.leastRoundTrip != nil })
    else { return .zero }
    let times =
      routes.endpoints.compactMap(\.health.leastRoundTrip)
      + routes.answers.compactMap(\.health.leastRoundTrip)
    return .nanoseconds(times.min() ?? 0)
  }
}
