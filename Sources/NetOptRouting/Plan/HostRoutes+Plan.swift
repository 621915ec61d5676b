import NetOptCore

/// What a plan depends on besides history and time.
struct PlanWish: Hashable, Sendable {
  /// The version of IP that was asked for.
  var family: IPAddress.Family?
  /// Whether a wrong certificate is no reason to leave an endpoint out.
  var unverified = false
  /// Whether a leg that loses costs nothing.
  var multiplexes = true
  /// Whether this machine's network is suspected.
  var suspectsNetwork = false

  /// Whether the order is the usual one.
  var isUsual: Bool { family == nil && !unverified }
}

/// A plan that is given out again as long as a new one would be the same.
struct KeptPlan: Sendable {
  let plan: RoutePlan
  let wish: PlanWish
  /// The index of the endpoint in front.
  let front: Int?
  /// When the reason why an endpoint is left out changes.
  let until: MonotonicInstant
}

/// How endpoints were weighed for a plan.
private struct Weighed: CandidateSource {
  let addresses: [IPAddress]
  let entries: [Ranking.Entry]
  /// The position of the one in front.
  let front: Int
  let excluded: [ExcludedEndpoint]
  /// When that was.
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
  private static let lookUp = RoutePlan.Leg(.dns, source: .dns)

  /// Makes the plan for a request that may use the list.
  ///
  /// A half-open endpoint stands where its speed puts it. When that is the front, it leads one plan alone, and others
  /// leave it out until the outcome is known. Further back it is in every plan: there it is tried only when nothing
  /// before it works, and then it is better than nothing. One whose certificate was wrong is half-open only when a check
  /// is due that no probe has made.
  mutating func plan(
    _ wish: PlanWish, at now: MonotonicInstant, using random: inout SplitMix64
  ) -> RoutePlan {
    if now >= reviewDue { review(at: now) }
    if policy != .balanced, let kept = kept.first, kept.wish == wish, now < kept.until { return kept.plan }
    let (ranking, excluded) = wish.isUsual ? (ranking, excluded) : assessed(for: wish, at: now)
    guard !ranking.entries.isEmpty else {
      return keep(planWithoutList(excluded, wish, at: now), nil, wish, excluded, at: now)
    }
    let front = front(of: ranking, using: &random)
    let index = ranking.entries[front].index
    if let kept = kept.first(where: { $0.wish == wish && $0.front == index && now < $0.until }) {
      return kept.plan
    }
    let plan = plan(ranking.entries, front: front, excluded, wish, at: now)
    if !endpoints[index].health.isClear,
      endpoints[index].health.state(at: now, unverified: wish.unverified) == .halfOpen
    {
      // The one attempt is in this plan, which is not given out again. Who leads is seen when it has succeeded.
      take(index, at: now)
      return plan
    }
    // A request with wishes of its own chooses for itself alone.
    if wish.isUsual {
      if case .known = ranking.entries[front].standing { leader = index } else { leader = nil }
    }
    return keep(plan, index, wish, excluded, at: now)
  }

  /// Takes the one attempt of a half-open endpoint.
  mutating func take(_ index: Int, byProbe: Bool = false, at now: MonotonicInstant) {
    endpoints[index].health.take(at: now, byProbe: byProbe)
    reassess(index, at: now)
  }

  /// The list's endpoints in the order of a plan made now, those that it leaves out last.
  func statuses(at now: MonotonicInstant) -> [EndpointStatus] {
    let (ranking, excluded) = assessed(for: PlanWish(), at: now)
    var order = ranking.entries
    if policy != .balanced, !order.isEmpty {
      let front = ranking.front(leader: leader, draw: draw, isSticky: policy == .pinned)
      order.insert(order.remove(at: front), at: 0)
    }
    return order.enumerated().map { status($1.index, rank: $0 + 1, excluded: nil, at: now) }
      + excluded.map { status($0.index, rank: nil, excluded: $0.exclusion.reason(at: now), at: now) }
  }

  private func front(of ranking: Ranking, using random: inout SplitMix64) -> Int {
    switch policy {
    case .fastest:
      ranking.front(leader: leader, draw: draw)
    case .pinned: ranking.front(leader: leader, draw: draw, isSticky: true)
    case .balanced: ranking.betterOfTwo(inFlight: { endpoints[$0].inFlight }, using: &random)
    }
  }

  private mutating func keep(
    _ plan: RoutePlan, _ front: Int?, _ wish: PlanWish, _ excluded: [ExcludedEndpoint],
    at now: MonotonicInstant
  ) -> RoutePlan {
    if policy != .balanced || kept.first?.wish != wish {
      kept.removeAll(keepingCapacity: true)
    } else {
      kept.removeAll { $0.until <= now }
    }
    let until = excluded.reduce(MonotonicInstant?.none) {
      $0.earlier($1.exclusion.nextChange(after: now), after: now)
    }
    kept.append(
      KeptPlan(plan: plan, wish: wish, front: front, until: until ?? MonotonicInstant(nanoseconds: .max)))
    return plan
  }

  private func plan(
    _ entries: [Ranking.Entry], front: Int, _ excluded: [ExcludedEndpoint], _ wish: PlanWish,
    _ withoutList: RouteReport.Fallback? = nil, at now: MonotonicInstant
  ) -> RoutePlan {
    let legs = legs(entries, front: front, lastResorts: lastResorts(excluded, at: now))
    return RoutePlan(
      origin: origin, policy: RoutePlan.Policy(policy),
      weighed: Weighed(
        addresses: addresses, entries: entries, front: front, excluded: excluded, moment: now), legs: legs,
      withoutList: withoutList, startsTwo: withoutList == .circuitsOpen, multiplexes: wish.multiplexes,
      suspectsNetwork: wish.suspectsNetwork, verifies: !wish.unverified)
  }

  /// The legs in their order: the one in front, the other usable ones, DNS, the last resorts.
  private func legs(_ entries: [Ranking.Entry], front: Int, lastResorts: [RoutePlan.Leg]) -> [RoutePlan.Leg] {
    let count = entries.count + 1 + lastResorts.count
    // Written in place: appending a hundred legs one by one takes as long as all the rest of planning.
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

  /// The endpoints whose circuits are open, which come after DNS: when everything else has failed for a request, one of
  /// them may be back. Those that could not be connected to come first, then those whose connections broke; of each kind
  /// the one that failed the longest ago. Those that are silent, or whose service failed, are tried when nothing else is
  /// under way any more, and those that asked for a rest are not tried.
  private func lastResorts(_ excluded: [ExcludedEndpoint], at now: MonotonicInstant) -> [RoutePlan.Leg] {
    if excluded.isEmpty { return [] }
    let shut = excluded.filter { $0.isShut && !endpoints[$0.index].health.isResting(at: now) }.map(\.index)
    return [Circuit.Fault.unreachable, .broke, .useless].flatMap { fault in
      let indices = shut.filter { endpoints[$0].health.lastFault == fault }
      return indices.sorted { lastFailed($0) < lastFailed($1) }.map { index in
        fault == .useless ? listedLegs[index].last : listedLegs[index]
      }
    }
  }

  /// Every circuit is open, or all are left out for other reasons. The endpoint whose failure is the oldest may be
  /// back; DNS starts beside it. One that asked for a rest is taken when all did.
  private func planWithoutList(
    _ excluded: [ExcludedEndpoint], _ wish: PlanWish, at now: MonotonicInstant
  ) -> RoutePlan {
    let shut = excluded.indices.filter { excluded[$0].isShut }
    let awake = shut.filter { !endpoints[excluded[$0].index].health.isResting(at: now) }
    guard
      let oldest = (awake.isEmpty ? shut : awake).min(by: {
        lastFailed(excluded[$0].index) < lastFailed(excluded[$1].index)
      })
    else {
      return plan([], front: 0, excluded, wish, .excluded, at: now)
    }
    var others = excluded
    let chosen = others.remove(at: oldest)
    let standing = chosen.score.map { Ranking.Standing.penalised($0.nanoseconds) } ?? .unknown
    return plan([entry(chosen.index, standing)], front: 0, others, wish, .circuitsOpen, at: now)
  }

  private func lastFailed(_ index: Int) -> (MonotonicInstant, Int) {
    (endpoints[index].health.lastFailed ?? MonotonicInstant(nanoseconds: .min), index)
  }

  private func status(
    _ index: Int, rank: Int?, excluded: ExclusionReason?, at now: MonotonicInstant
  ) -> EndpointStatus {
    let endpoint = endpoints[index]
    return EndpointStatus(
      endpoint: endpoint.listed, rank: rank, score: score(index, at: now),
      rtt: endpoint.health.roundTrip?.smoothed, state: endpoint.health.state(at: now), chosen: rank == 1,
      excluded: excluded, lastFailure: endpoint.health.lastFailure)
  }
}
