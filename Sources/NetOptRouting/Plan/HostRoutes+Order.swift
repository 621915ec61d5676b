import NetOptCore

/// An endpoint that plans exclude.
struct ExcludedEndpoint: Sendable {
  /// The endpoint's index in `HostRoutes.endpoints`.
  let index: Int
  /// The endpoint's score, with penalties; `nil` without measurements and penalties.
  let score: Duration?
  /// The reason for the exclusion.
  let exclusion: Exclusion
  /// Whether the circuit breaker excludes the endpoint: it is open, or it is half-open and its one attempt is
  /// under way. A plan may still try such an endpoint as a last resort.
  let isCircuitOpen: Bool
}

// The usable endpoints and their order. Each change updates the order for one endpoint.
extension HostRoutes {
  /// Whether plans may use an endpoint: `usable` with its standing in the ranking, or `excluded` with the
  /// reason.
  private enum Assessment {
    case usable(Ranking.Standing)
    case excluded(ExcludedEndpoint)
  }

  /// Moves an endpoint to its new place in `ranking` or `excluded` after its health has changed. Drops the
  /// plans that are kept for reuse, because their order may be outdated.
  mutating func reassess(_ index: Int, at now: MonotonicInstant) {
    kept.removeAll(keepingCapacity: true)
    nextProbes = nil
    writeLeg(to: index)
    // The usual case comes first: it does not copy `health`.
    if endpoints[index].health.isHealthy {
      let standing = endpoints[index].health.healthyScore(secure: isSecure).map { Ranking.Standing.known($0) }
      ranking.insertOrMove(entry(index, standing ?? .unknown))
      if !excluded.isEmpty { excluded.removeAll { $0.index == index } }
      return noteNextChange(of: index, at: now)
    }
    switch assess(index, unverified: false, at: now) {
    case .usable(let standing):
      ranking.insertOrMove(entry(index, standing))
      if !excluded.isEmpty { excluded.removeAll { $0.index == index } }
    case .excluded(let one):
      ranking.remove(index)
      excluded.removeAll { $0.index == index }
      excluded.insert(one, at: excluded.firstIndex { $0.index > index } ?? excluded.endIndex)
    }
    noteNextChange(of: index, at: now)
  }

  /// Writes the leg to an endpoint with its present stagger.
  private mutating func writeLeg(to index: Int) {
    let estimate = endpoints[index].health.readiness(secure: isSecure)
    listedLegs[index] = RoutePlan.Leg(.address(addresses[index]), source: .list, stagger: stagger(estimate))
  }

  /// Writes into `timed` when the endpoint's state next changes without an event.
  private mutating func noteNextChange(of index: Int, at now: MonotonicInstant) {
    if !timed.isEmpty { timed.removeAll { $0.index == index } }
    guard let due = endpoints[index].health.nextChange(after: now) else { return }
    timed.append((index, due))
    reviewDue = min(reviewDue, due)
  }

  /// Recomputes the ranks of all endpoints after many have changed. This is faster than a call of
  /// `reassess(_:at:)` for each endpoint, because each such call searches the other endpoints.
  mutating func reassessAll(at now: MonotonicInstant) {
    kept.removeAll(keepingCapacity: true)
    nextProbes = nil
    (ranking, excluded) = assessed(for: PlanConstraints(), at: now)
    timed.removeAll(keepingCapacity: true)
    reviewDue = MonotonicInstant(nanoseconds: .max)
    for index in endpoints.indices {
      writeLeg(to: index)
      guard let due = endpoints[index].health.nextChange(after: now) else { continue }
      timed.append((index, due))
      reviewDue = min(reviewDue, due)
    }
  }

  /// Handles each endpoint in `timed` whose change is due. Compares its response times again with those that
  /// are usual for the origin (`EndpointHealth.updateSlowness`), if that is due, and ranks the endpoint
  /// again.
  mutating func review(at now: MonotonicInstant) {
    let bound = usual.bound ?? .max
    for (index, due) in timed where due <= now {
      if endpoints[index].health.isSlownessDue(at: now),
        !endpoints[index].health.updateSlowness(against: bound, at: now)
      {
        endpoints[index].health.postponeSlownessReview(at: now)
      }
      reassess(index, at: now)
    }
    reviewDue = timed.map(\.due).min() ?? MonotonicInstant(nanoseconds: .max)
  }

  /// Ranks all endpoints for a request, and returns the result. Leaves `ranking` and `excluded` as they are:
  /// these hold the result for requests without constraints.
  func assessed(for constraints: PlanConstraints, at now: MonotonicInstant) -> (
    ranking: Ranking, excluded: [ExcludedEndpoint]
  ) {
    var entries: [Ranking.Entry] = []
    var excluded: [ExcludedEndpoint] = []
    for index in endpoints.indices {
      if let family = constraints.family, addresses[index].family != family {
        excluded.append(
          ExcludedEndpoint(
            index: index, score: score(index, at: now), exclusion: .reason(.family(family)),
            isCircuitOpen: false))
        continue
      }
      switch assess(index, unverified: constraints.unverified, at: now) {
      case .usable(let standing): entries.append(entry(index, standing))
      case .excluded(let one): excluded.append(one)
      }
    }
    return (Ranking(entries), excluded)
  }

  /// The listed addresses in the order in which they are probed: the nearest first.
  var addressesToProbe: [IPAddress] {
    endpoints.indices.map { entry($0, .unknown) }.sorted().map { addresses[$0.index] }
  }

  /// Makes the entry of an endpoint for the ranking.
  func entry(_ index: Int, _ standing: Ranking.Standing) -> Ranking.Entry {
    Ranking.Entry(
      index: index, standing: standing, distance: endpoints[index].distance,
      weight: endpoints[index].listed.weight)
  }

  /// The endpoint's score, with penalties; `nil` without measurements and penalties.
  func score(_ index: Int, at now: MonotonicInstant) -> Duration? {
    endpoints[index].health.score(secure: isSecure, at: now)
  }

  /// Decides whether plans may use an endpoint. For a usable endpoint, also decides its standing in the
  /// ranking.
  ///
  /// - Parameter unverified: whether the request accepts a wrong certificate.
  private func assess(_ index: Int, unverified: Bool, at now: MonotonicInstant) -> Assessment {
    if endpoints[index].health.isHealthy {
      guard let score = endpoints[index].health.healthyScore(secure: isSecure) else {
        return .usable(.unknown)
      }
      return .usable(.known(score))
    }
    let health = endpoints[index].health
    let state = health.state(at: now, unverified: unverified)
    let score = health.score(secure: isSecure, at: now)
    let isCircuitOpen = state == .open || state == .halfOpen && health.isAttemptUnderWay(at: now)
    if isCircuitOpen || state == .quarantined {
      return .excluded(
        ExcludedEndpoint(
          index: index, score: score, exclusion: health.exclusion(in: state, at: now),
          isCircuitOpen: isCircuitOpen))
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
