import NetOptCore

/// An endpoint that plans leave out.
struct ExcludedEndpoint: Sendable {
  let index: Int
  /// Its score with penalties.
  let score: Duration?
  /// Why.
  let exclusion: Exclusion
  /// Whether only failures keep it out, so that it is better than nothing.
  let isShut: Bool
}

// Which endpoints may be used and in which order, kept up to date one endpoint at a time.
extension HostRoutes {
  /// What an endpoint is to plans.
  private enum Assessment {
    case usable(Ranking.Standing)
    case excluded(ExcludedEndpoint)
  }

  /// Puts an endpoint of which something has changed where it belongs.
  mutating func reassess(_ index: Int, at now: MonotonicInstant) {
    kept.removeAll(keepingCapacity: true)
    nextProbes = nil
    writeLeg(to: index)
    // The usual case first, for which nothing of the health has to be copied.
    if endpoints[index].health.isClear {
      let standing = endpoints[index].health.clearScore(secure: isSecure).map { Ranking.Standing.known($0) }
      ranking.place(entry(index, standing ?? .unknown))
      if !excluded.isEmpty { excluded.removeAll { $0.index == index } }
      return noteNextChange(of: index, at: now)
    }
    switch assess(index, unverified: false, at: now) {
    case .usable(let standing):
      ranking.place(entry(index, standing))
      if !excluded.isEmpty { excluded.removeAll { $0.index == index } }
    case .excluded(let one):
      ranking.remove(index)
      excluded.removeAll { $0.index == index }
      excluded.insert(one, at: excluded.firstIndex { $0.index > index } ?? excluded.endIndex)
    }
    noteNextChange(of: index, at: now)
  }

  private mutating func writeLeg(to index: Int) {
    let estimate = endpoints[index].health.readiness(secure: isSecure)
    listedLegs[index] = RoutePlan.Leg(.address(addresses[index]), source: .list, stagger: stagger(estimate))
  }

  private mutating func noteNextChange(of index: Int, at now: MonotonicInstant) {
    if !timed.isEmpty { timed.removeAll { $0.index == index } }
    guard let due = endpoints[index].health.nextChange(after: now) else { return }
    timed.append((index, due))
    reviewDue = min(reviewDue, due)
  }

  /// Puts all endpoints where they belong after many have changed. One by one each would be looked for among all others.
  mutating func reassessAll(at now: MonotonicInstant) {
    kept.removeAll(keepingCapacity: true)
    nextProbes = nil
    (ranking, excluded) = assessed(for: PlanWish(), at: now)
    timed.removeAll(keepingCapacity: true)
    reviewDue = MonotonicInstant(nanoseconds: .max)
    for index in endpoints.indices {
      writeLeg(to: index)
      guard let due = endpoints[index].health.nextChange(after: now) else { continue }
      timed.append((index, due))
      reviewDue = min(reviewDue, due)
    }
  }

  /// Puts the endpoints where they belong that time has changed.
  mutating func review(at now: MonotonicInstant) {
    let bound = usual.bound ?? .max
    for (index, due) in timed where due <= now {
      if endpoints[index].health.isSlownessDue(at: now),
        !endpoints[index].health.weighSlowness(against: bound, at: now)
      {
        endpoints[index].health.putOffSlowness(at: now)
      }
      reassess(index, at: now)
    }
    reviewDue = timed.map(\.due).min() ?? MonotonicInstant(nanoseconds: .max)
  }

  /// All endpoints as they are now, for a request with wishes, or without looking at what is kept.
  func assessed(for wish: PlanWish, at now: MonotonicInstant) -> (
    ranking: Ranking, excluded: [ExcludedEndpoint]
  ) {
    var entries: [Ranking.Entry] = []
    var excluded: [ExcludedEndpoint] = []
    for index in endpoints.indices {
      if let family = wish.family, addresses[index].family != family {
        excluded.append(
          ExcludedEndpoint(
            index: index, score: score(index, at: now), exclusion: .reason(.family(family)), isShut: false))
        continue
      }
      switch assess(index, unverified: wish.unverified, at: now) {
      case .usable(let standing): entries.append(entry(index, standing))
      case .excluded(let one): excluded.append(one)
      }
    }
    return (Ranking(entries), excluded)
  }

  /// The addresses of the list in the order in which they are worth probing: the nearest first.
  var addressesToProbe: [IPAddress] {
    endpoints.indices.map { entry($0, .unknown) }.sorted().map { addresses[$0.index] }
  }

  func entry(_ index: Int, _ standing: Ranking.Standing) -> Ranking.Entry {
    Ranking.Entry(
      index: index, standing: standing, distance: endpoints[index].distance,
      weight: endpoints[index].listed.weight)
  }

  func score(_ index: Int, at now: MonotonicInstant) -> Duration? {
    endpoints[index].health.score(secure: isSecure, at: now)
  }

  private func assess(_ index: Int, unverified: Bool, at now: MonotonicInstant) -> Assessment {
    if endpoints[index].health.isClear {
      guard let score = endpoints[index].health.clearScore(secure: isSecure) else { return .usable(.unknown) }
      return .usable(.known(score))
    }
    let health = endpoints[index].health
    let state = health.state(at: now, unverified: unverified)
    let score = health.score(secure: isSecure, at: now)
    let isShut = state == .open || state == .halfOpen && health.isTried(at: now)
    if isShut || state == .quarantined {
      return .excluded(
        ExcludedEndpoint(
          index: index, score: score, exclusion: health.exclusion(in: state, at: now), isShut: isShut))
    }
    if health.isSuspected, state == .closed {
      return .usable(
        .penalised((score ?? .zero).nanoseconds.addingClamped(EndpointHealth.penalty.nanoseconds)))
    }
    guard let score else { return .usable(.unknown) }
    return .usable(
      health.penalty(at: now) == nil ? .known(score.nanoseconds) : .penalised(score.nanoseconds))
  }
}
