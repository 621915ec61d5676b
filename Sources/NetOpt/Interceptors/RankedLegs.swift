import NetOptCore

/// Turns the DNS leg of a plan into legs to addresses. It resolves the host name, and the planner ranks the
/// addresses (`RoutePlanner.ordered`).
struct RankedLegs: LegSource {
  let resolver: any Resolver
  let router: Router

  func legs(for origin: Origin, fresh: Bool) async throws(NetOptError) -> [RoutePlan.Leg] {
    let answer = try await resolver.resolve(origin.host, fresh: fresh)
    return router.withPlanner { planner, now in
      planner.ordered(answer.addresses, for: origin, at: now)
        .map { RoutePlan.Leg(.address($0.address), source: .dns, stagger: $0.stagger) }
    }
  }
}
