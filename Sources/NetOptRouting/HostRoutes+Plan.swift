import NetOptCore

/// What a plan depends on besides history and time.
struct PlanWish: Hashable, Sendable {
  /// The version of IP that was asked for.
  let family: IPAddress.Family?
  /// Whether a wrong certificate is no reason to leave an endpoint out.
  let unverified: Bool
  /// Whether a leg that loses costs nothing.
  let multiplexes: Bool
}

/// A plan that is given out again as long as a new one would be the same.
struct KeptPlan: Sendable {
  let plan: RoutePlan
  let wish: PlanWish
  /// When the passing of time makes another plan of it.
  let until: MonotonicInstant
}

extension HostRoutes {
  /// Which endpoints of the list may be used, in their order, and which not.
  private struct Choice {
    var usable: [Int] = []
    /// The others. `isShut` says that only failures keep an endpoint out.
    var excluded: [(index: Int, reason: String, isShut: Bool)] = []
    var leader: Int?
  }

  /// Makes the plan for a request that may use the list.
  ///
  /// A half-open endpoint stands where its speed puts it. When that is the front, it leads one plan alone, and others
  /// leave it out until the outcome is known. Further back it is in every plan: there it is tried only when nothing
  /// before it works, and then it is better than nothing.
  mutating func plan(_ wish: PlanWish, at now: MonotonicInstant) -> RoutePlan {
    if let kept, kept.wish == wish, now < kept.until { return kept.plan }
    let choice = choose(wish, at: now)
    let plan = plan(choice, wish, at: now)
    if let first = choice.usable.first,
      endpoints[first].health.state(at: now, unverified: wish.unverified) == .halfOpen
    {
      // The one attempt is in this plan, which is not given out again. Who leads is seen when it has succeeded.
      take(first, at: now)
    } else {
      leader = choice.leader
      let changes = endpoints.compactMap { $0.health.nextChange(after: now) }
      kept = KeptPlan(plan: plan, wish: wish, until: changes.min() ?? MonotonicInstant(nanoseconds: .max))
    }
    return plan
  }

  /// Takes the one attempt of a half-open endpoint.
  mutating func take(_ index: Int, at now: MonotonicInstant) {
    endpoints[index].health.take(at: now)
    kept = nil
  }

  /// The list's endpoints in the order of a plan made now, those that it leaves out last.
  func statuses(at now: MonotonicInstant) -> [EndpointStatus] {
    let choice = choose(PlanWish(family: nil, unverified: false, multiplexes: true), at: now)
    let included = choice.usable.enumerated().map { status($1, rank: $0 + 1, excluded: nil, at: now) }
    return included + choice.excluded.map { status($0.index, rank: nil, excluded: $0.reason, at: now) }
  }

  /// The addresses of the list in the order in which they are worth probing: the nearest first.
  var addressesToProbe: [IPAddress] {
    endpoints.indices.map { entry($0, .unknown) }.sorted().map { endpoints[$0.index].listed.address }
  }

  // MARK: Choosing

  private func choose(_ wish: PlanWish, at now: MonotonicInstant) -> Choice {
    var choice = Choice()
    var entries: [Ranking.Entry] = []
    entries.reserveCapacity(endpoints.count)
    for index in endpoints.indices {
      let health = endpoints[index].health
      let state = health.state(at: now, unverified: wish.unverified)
      let isShut = state == .open || state == .halfOpen && health.isTried(at: now)
      if let family = wish.family, endpoints[index].listed.address.family != family {
        choice.excluded.append((index, "only \(family == .v4 ? "IPv4" : "IPv6") was asked for", false))
      } else if isShut || state == .quarantined {
        choice.excluded.append((index, health.reason(of: state, at: now), isShut))
      } else {
        entries.append(entry(index, standing(health, at: now)))
      }
    }
    let ranking = ranked(entries)
    choice.usable = ranking.entries.map(\.index)
    choice.leader = ranking.leader
    return choice
  }

  private func ranked(_ entries: [Ranking.Entry]) -> Ranking {
    switch policy {
    case .fastest: Ranking(entries, leader: leader, draw: draw)
    }
  }

  private func entry(_ index: Int, _ standing: Ranking.Standing) -> Ranking.Entry {
    Ranking.Entry(
      index: index, standing: standing, distance: endpoints[index].distance,
      weight: endpoints[index].listed.weight)
  }

  private func standing(_ health: EndpointHealth, at now: MonotonicInstant) -> Ranking.Standing {
    guard let score = score(health, at: now) else { return .unknown }
    return health.penalty(at: now) == nil ? .known(score.nanoseconds) : .penalised(score.nanoseconds)
  }

  /// The smoothed time to be ready plus penalties.
  private func score(_ health: EndpointHealth, at now: MonotonicInstant) -> Duration? {
    let time = health.readiness(secure: origin.scheme == .https)?.smoothed
    guard let penalty = health.penalty(at: now) else { return time }
    return (time ?? .zero) + penalty
  }

  // MARK: Writing down

  private func plan(_ choice: Choice, _ wish: PlanWish, at now: MonotonicInstant) -> RoutePlan {
    var choice = choice
    var withoutList: RouteReport.Fallback?
    if choice.usable.isEmpty {
      withoutList = .excluded
      // Every circuit is open. The endpoint whose failure is the oldest may be back; DNS starts beside it.
      let oldest = choice.excluded.indices.filter { choice.excluded[$0].isShut }.min {
        lastFailed(choice.excluded[$0].index) < lastFailed(choice.excluded[$1].index)
      }
      if let oldest {
        withoutList = .circuitsOpen
        choice.usable = [choice.excluded.remove(at: oldest).index]
      }
    }
    var candidates: [RoutePlan.Candidate] = []
    candidates.reserveCapacity(endpoints.count)
    var legs: [RoutePlan.Leg] = []
    legs.reserveCapacity(choice.usable.count + 1)
    for index in choice.usable {
      let endpoint = endpoints[index]
      candidates.append(candidate(endpoint, nil, at: now))
      legs.append(
        RoutePlan.Leg(.address(endpoint.listed.address), source: .list, stagger: stagger(endpoint.health)))
    }
    for (index, reason, _) in choice.excluded {
      candidates.append(candidate(endpoints[index], reason, at: now))
    }
    legs.append(RoutePlan.Leg(.dns, source: .dns))
    return RoutePlan(
      origin: origin, policy: policy.rawValue, candidates: candidates, legs: legs, withoutList: withoutList,
      startsTwo: withoutList == .circuitsOpen, multiplexes: wish.multiplexes)
  }

  private func lastFailed(_ index: Int) -> (MonotonicInstant, Int) {
    (endpoints[index].health.lastFailed ?? MonotonicInstant(nanoseconds: .min), index)
  }

  private func candidate(
    _ endpoint: Endpoint, _ excluded: String?, at now: MonotonicInstant
  ) -> RoutePlan.Candidate {
    RoutePlan.Candidate(
      endpoint.listed.address, score: score(endpoint.health, at: now), source: .list, excluded: excluded)
  }

  private func status(
    _ index: Int, rank: Int?, excluded: String?, at now: MonotonicInstant
  ) -> EndpointStatus {
    let endpoint = endpoints[index]
    return EndpointStatus(
      endpoint: endpoint.listed, rank: rank, score: score(endpoint.health, at: now),
      rtt: endpoint.health.roundTrip?.smoothed, state: endpoint.health.state(at: now), chosen: rank == 1,
      excluded: excluded, lastFailure: endpoint.health.lastFailure)
  }
}
