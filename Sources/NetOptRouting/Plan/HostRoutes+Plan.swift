import NetOptCore

/// What a plan depends on besides the endpoints and their health: properties of the request, of the origin
/// and of this machine's network. Requests with equal constraints can share a plan.
struct PlanConstraints: Hashable, Sendable {
  /// The IP version that the request asks for; `nil` when the request allows both.
  var family: IPAddress.Family?
  /// Whether the request accepts an endpoint whose certificate was wrong.
  var unverified = false
  /// Whether a connection to the origin is expected to carry many requests at once (HTTP/2). A leg that loses
  /// the race then keeps its connection for later requests.
  var multiplexes = true
  /// Whether the planner suspects this machine's network.
  var suspectsNetwork = false

  /// Whether the request allows both IP versions and accepts no wrong certificate. Its plan then uses the
  /// order in `HostRoutes.ranking`.
  var isUsual: Bool { family == nil && !unverified }
}

/// A plan that the planner reuses as long as a new plan would be the same.
struct KeptPlan: Sendable {
  /// The plan that is given out again.
  let plan: RoutePlan
  /// The constraints of the requests that get the plan.
  let constraints: PlanConstraints
  /// The index in `HostRoutes.endpoints` of the plan's first endpoint; `nil` when no endpoint was usable.
  let front: Int?
  /// When the plan may no longer be reused: the first moment at which the reason for the exclusion of an
  /// endpoint changes. The moment with the value `.max` if time alone changes no reason.
  let until: MonotonicInstant
}

/// The ranked and excluded endpoints of a plan. They become candidates (`RouteReport.Candidate`) only when a
/// caller reads the candidates.
private struct RankedCandidates: CandidateSource {
  /// The addresses of all listed endpoints. The indices in `entries` and `excluded` refer to this array.
  let addresses: [IPAddress]
  /// The usable endpoints, in the order of the ranking.
  let entries: [Ranking.Entry]
  /// The position in `entries` of the endpoint that the plan tries first.
  let front: Int
  let excluded: [ExcludedEndpoint]
  /// When the planner made the plan.
  let moment: MonotonicInstant

  var isEmpty: Bool { addresses.isEmpty }

  func candidates() -> [RouteReport.Candidate] {
    var order = Array(entries.indices)
    if front > 0 { order.insert(order.remove(at: front), at: 0) }
    return order.map { position in
      let entry = entries[position]
      return RouteReport.Candidate(addresses[entry.index], score: entry.standing.score, source: .list)
    }
      + excluded.map {
        RouteReport.Candidate(
          addresses[$0.index], score: $0.score, source: .list, excluded: $0.exclusion.reason(at: moment))
      }
  }
}

extension HostRoutes {
  /// The leg to the addresses that DNS gives for the host.
  private static let lookUp = RoutePlan.Leg(.dns, source: .dns)

  /// Makes the plan for a request that may use the list.
  ///
  /// The planner ranks a half-open endpoint by its speed alone. The rank decides which plans contain the
  /// endpoint:
  ///
  /// - A half-open endpoint that ranks first is the first leg of one plan, which takes the endpoint's one
  ///   attempt. Until the result of this attempt is known, all other plans exclude the endpoint.
  /// - A half-open endpoint that ranks lower is in every plan. A request tries it only when no earlier leg is
  ///   ready in time, so these plans do not take the endpoint's one attempt.
  ///
  /// Normally probes check a wrong certificate again. An endpoint in quarantine becomes half-open only when
  /// no probe has made a due check in time (`Quarantine.requestsMayCheckAt`).
  mutating func plan(
    _ constraints: PlanConstraints, at now: MonotonicInstant, using random: inout SplitMix64
  ) -> RoutePlan {
    if now >= reviewDue { review(at: now) }
    if policy != .balanced, let kept = kept.first, kept.constraints == constraints, now < kept.until {
      return kept.plan
    }
    let (ranking, excluded) = constraints.isUsual ? (ranking, excluded) : assessed(for: constraints, at: now)
    guard !ranking.entries.isEmpty else {
      let plan = planWithoutUsableEndpoint(excluded, constraints, at: now)
      return keep(plan, nil, constraints, excluded, at: now)
    }
    let front = front(of: ranking, using: &random)
    let index = ranking.entries[front].index
    if let kept = kept.first(
      where: { $0.constraints == constraints && $0.front == index && now < $0.until })
    {
      return kept.plan
    }
    let plan = plan(ranking.entries, front: front, excluded, constraints, at: now)
    if !endpoints[index].health.isHealthy,
      endpoints[index].health.state(at: now, unverified: constraints.unverified) == .halfOpen
    {
      // This plan holds the one attempt of the half-open endpoint, so the planner does not reuse the plan.
      // The half-open endpoint can become the leader only after the attempt has succeeded.
      take(index, at: now)
      return plan
    }
    // A request with its own constraints does not change the leader.
    if constraints.isUsual {
      if case .known = ranking.entries[front].standing { leader = index } else { leader = nil }
    }
    return keep(plan, index, constraints, excluded, at: now)
  }

  /// Takes the one attempt that a half-open endpoint allows, for a request or a probe.
  mutating func take(_ index: Int, byProbe: Bool = false, at now: MonotonicInstant) {
    endpoints[index].health.take(at: now, byProbe: byProbe)
    reassess(index, at: now)
  }

  /// The status of each listed endpoint, in the order of a plan that is made now for a request without
  /// constraints. With the policy `balanced`, which draws the first endpoint, the order is that of the
  /// ranking. Excluded endpoints come last.
  func statuses(at now: MonotonicInstant) -> [EndpointStatus] {
    let (ranking, excluded) = assessed(for: PlanConstraints(), at: now)
    var order = ranking.entries
    if policy != .balanced, !order.isEmpty {
      let front = ranking.front(leader: leader, draw: draw, isSticky: policy == .pinned)
      order.insert(order.remove(at: front), at: 0)
    }
    return order.enumerated().map { status($1.index, rank: $0 + 1, excluded: nil, at: now) }
      + excluded.map { status($0.index, rank: nil, excluded: $0.exclusion.reason(at: now), at: now) }
  }

  /// The position in `ranking.entries` of the endpoint that the next plan tries first, by the policy.
  private func front(of ranking: Ranking, using random: inout SplitMix64) -> Int {
    switch policy {
    case .fastest:
      ranking.front(leader: leader, draw: draw)
    case .pinned: ranking.front(leader: leader, draw: draw, isSticky: true)
    case .balanced: ranking.betterOfTwo(inFlight: { endpoints[$0].inFlight }, using: &random)
    }
  }

  /// Keeps a plan for reuse, and returns it. `front` is the index of its first endpoint; `nil` when no
  /// endpoint was usable.
  private mutating func keep(
    _ plan: RoutePlan, _ front: Int?, _ constraints: PlanConstraints, _ excluded: [ExcludedEndpoint],
    at now: MonotonicInstant
  ) -> RoutePlan {
    if policy != .balanced || kept.first?.constraints != constraints {
      kept.removeAll(keepingCapacity: true)
    } else {
      kept.removeAll { $0.until <= now }
    }
    let until = excluded.reduce(MonotonicInstant?.none) {
      $0.earlier($1.exclusion.nextChange(after: now), after: now)
    }
    kept.append(
      KeptPlan(
        plan: plan, constraints: constraints, front: front,
        until: until ?? MonotonicInstant(nanoseconds: .max)))
    return plan
  }

  /// Makes a plan from the endpoints that it tries before DNS.
  ///
  /// - Parameters:
  ///   - entries: the usable endpoints; or, when no endpoint is usable, the one endpoint to try all the same,
  ///     or none.
  ///   - front: the position in `entries` of the endpoint to try first.
  ///   - excluded: the other endpoints. Some of them become last resorts.
  ///   - noneUsable: why no endpoint is usable; `nil` when some are.
  private func plan(
    _ entries: [Ranking.Entry], front: Int, _ excluded: [ExcludedEndpoint], _ constraints: PlanConstraints,
    _ noneUsable: RouteReport.Fallback? = nil, at now: MonotonicInstant
  ) -> RoutePlan {
    let legs = legs(entries, front: front, lastResorts: lastResorts(excluded, at: now))
    return RoutePlan(
      origin: origin, policy: RoutePlan.Policy(policy),
      candidateSource: RankedCandidates(
        addresses: addresses, entries: entries, front: front, excluded: excluded, moment: now), legs: legs,
      noneUsable: noneUsable, startsTwo: noneUsable == .circuitsOpen, multiplexes: constraints.multiplexes,
      suspectsNetwork: constraints.suspectsNetwork, verifies: !constraints.unverified)
  }

  /// The legs of a plan in order: the first endpoint, the other endpoints of `entries`, DNS, and the last
  /// resorts.
  private func legs(_ entries: [Ranking.Entry], front: Int, lastResorts: [RoutePlan.Leg]) -> [RoutePlan.Leg] {
    let count = entries.count + 1 + lastResorts.count
    // Writes in place: appending a hundred legs one by one takes as long as the rest of planning.
    return Array(unsafeUninitializedCapacity: count) { buffer, written in
      func write(_ leg: RoutePlan.Leg) {
        buffer.initializeElement(at: written, to: leg)
        written += 1
      }
      if front < entries.count { write(listedLegs[entries[front].index]) }
      for position in entries.indices where position != front { write(listedLegs[entries[position].index]) }
      write(Self.lookUp)
      for leg in lastResorts { write(leg) }
    }
  }

  /// The last resorts of a plan: the legs to the endpoints that circuit breakers exclude. The circuit breaker
  /// of such an endpoint is open, or it is half-open and its one attempt is under way. Last resorts come
  /// after DNS: when all other legs have failed, one of these endpoints may work again.
  ///
  /// Endpoints that were unreachable come first. Endpoints whose connections broke come next, and endpoints
  /// that are silent or whose service failed come last. In each group, the endpoint that failed longest ago
  /// comes first. A leg to an endpoint of the third group starts only when no other leg is under way
  /// (`RoutePlan.Leg.startsAlone`). Endpoints that asked for a rest (`Retry-After`) have no leg.
  private func lastResorts(_ excluded: [ExcludedEndpoint], at now: MonotonicInstant) -> [RoutePlan.Leg] {
    if excluded.isEmpty { return [] }
    let circuitOpen = excluded.filter { $0.isCircuitOpen && !endpoints[$0.index].health.isResting(at: now) }
      .map(\.index)
    return [Circuit.Fault.unreachable, .broke, .useless].flatMap { fault in
      let indices = circuitOpen.filter { endpoints[$0].health.lastFault == fault }
      return indices.sorted { lastFailed($0) < lastFailed($1) }.map { index in
        fault == .useless ? listedLegs[index].startingAlone : listedLegs[index]
      }
    }
  }

  /// Makes the plan when no endpoint is usable.
  ///
  /// When circuit breakers exclude endpoints, the plan begins with one of these endpoints, because it may
  /// work again. The chosen endpoint is the one whose last failure is the oldest. An endpoint that asked for
  /// a rest (`Retry-After`) is chosen only if all of them asked for a rest.
  /// DNS starts at the same time as the chosen endpoint. When no circuit breaker excludes an endpoint, the
  /// plan uses DNS alone.
  private func planWithoutUsableEndpoint(
    _ excluded: [ExcludedEndpoint], _ constraints: PlanConstraints, at now: MonotonicInstant
  ) -> RoutePlan {
    let circuitOpen = excluded.indices.filter { excluded[$0].isCircuitOpen }
    let notResting = circuitOpen.filter { !endpoints[excluded[$0].index].health.isResting(at: now) }
    guard
      let oldest = (notResting.isEmpty ? circuitOpen : notResting).min(by: {
        lastFailed(excluded[$0].index) < lastFailed(excluded[$1].index)
      })
    else {
      return plan([], front: 0, excluded, constraints, .excluded, at: now)
    }
    var others = excluded
    let chosen = others.remove(at: oldest)
    let standing = chosen.score.map { Ranking.Standing.penalised($0.nanoseconds) } ?? .unknown
    return plan([entry(chosen.index, standing)], front: 0, others, constraints, .circuitsOpen, at: now)
  }

  /// The key by which endpoints are sorted so that the one that failed longest ago comes first: when the
  /// endpoint last failed, and its index, which decides between equal moments.
  private func lastFailed(_ index: Int) -> (MonotonicInstant, Int) {
    (endpoints[index].health.lastFailed ?? MonotonicInstant(nanoseconds: .min), index)
  }

  /// The status of an endpoint for callers.
  private func status(
    _ index: Int, rank: Int?, excluded: ExclusionReason?, at now: MonotonicInstant
  ) -> EndpointStatus {
    let endpoint = endpoints[index]
    let health = endpoint.health
    return EndpointStatus(
      endpoint: endpoint.listed, rank: rank, score: score(index, at: now), rtt: health.roundTrip?.smoothed,
      state: health.state(at: now), chosen: rank == 1, excluded: excluded,
      avoidedSince: health.avoidedSince(at: now), lastFailure: health.lastFailure,
      lastFailed: health.lastFailed, counts: endpoint.counts)
  }
}
