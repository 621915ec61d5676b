import NetOptCore
import NetOptRouting

// The part of the prober that takes samples of endpoints.

extension Prober {
  /// The maximum number of quick samples that follow the full sample of an endpoint.
  private static let furtherSampleCount = 2

  /// An endpoint to probe, and what happens with the connection of the probe.
  struct Target: Hashable {
    /// The origin that the endpoint serves.
    let origin: Origin
    /// The address of the endpoint.
    let address: IPAddress
    /// Whether to keep the connection for requests, if the transport can keep it.
    let keepsConnection: Bool
  }

  /// What a probe of an endpoint has measured.
  struct Samples {
    /// The durations of the TCP handshakes, or the round-trip times of the echo requests, in order.
    var connects: [Duration] = []
    /// Why the probe failed; `nil` when it did not fail.
    var failure: LegFailure?
  }

  /// All endpoints of the given origins, as targets. A host that is not in the list has no endpoints.
  ///
  /// - Parameter keepsConnection: whether to keep the connections for requests.
  func targets(of origins: [Origin], keepsConnection: Bool) -> [Target] {
    let list = list
    return origins.flatMap { origin -> [Target] in
      guard let entry = list?.hosts[origin.host] else { return [] }
      return entry.endpoints.map {
        Target(origin: origin, address: $0.address, keepsConnection: keepsConnection)
      }
    }
  }

  /// Makes the result of probing a host, with the present ranking of its endpoints. `nil` when the host is no
  /// longer in the list.
  ///
  /// - Parameters:
  ///   - method: the method of the probes; `nil` for the default method of the origin.
  ///   - samples: the samples of all probed endpoints.
  func result(_ origin: Origin, method: ProbeMethod?, _ samples: [Target: Samples]) -> HostProbe? {
    guard let entry = list?.hosts[origin.host] else { return nil }
    let ranking = router.withPlanner { planner, now in planner.status(of: origin, at: now) }
    let endpoints = ranking.map { status in
      let found = samples[Target(origin: origin, address: status.endpoint.address, keepsConnection: false)]
      let excluded = status.rank == nil ? status.lastFailure : nil
      return EndpointProbe(
        address: status.endpoint.address, region: status.endpoint.region, isp: status.endpoint.isp,
        rank: status.rank, rtt: status.rtt, samples: found?.connects ?? [], state: status.state,
        chosen: status.chosen, failure: found?.failure ?? excluded)
    }
    return HostProbe(
      host: origin.host, port: entry.port, method: self.method(method, for: origin), endpoints: endpoints)
  }

  /// Probes endpoints, at most `configuration.concurrency` of them at once. All probes together take at most
  /// `configuration.budget`.
  ///
  /// - Parameter method: the probe method; `nil` for the default method of each origin.
  /// - Returns: the samples by endpoint.
  func sample(_ targets: [Target], method: ProbeMethod?) async -> [Target: Samples] {
    var targets = targets[...]
    let end = timeSource.now() + configuration.budget
    return await withTaskGroup(of: (Target, Samples).self) { group in
      var results: [Target: Samples] = [:]
      var underWay = 0
      while !targets.isEmpty || underWay > 0 {
        while underWay < max(1, configuration.concurrency), let target = targets.popFirst() {
          underWay += 1
          let isShortened = !results.isEmpty
          group.addTask {
            (target, await self.sample(target, method: method, until: end, isShortened: isShortened))
          }
        }
        guard let (target, samples) = await group.next() else { break }
        underWay -= 1
        results[target] = samples
      }
      return results
    }
  }

  /// Probes one endpoint: takes a full sample, and then quick samples.
  ///
  /// - Parameters:
  ///   - end: when the budget ends.
  ///   - isShortened: whether this probe started late, after the probe of another endpoint had ended. The
  ///     full sample then gets only the rest of the budget; otherwise it gets the whole budget.
  private func sample(
    _ target: Target, method: ProbeMethod?, until end: MonotonicInstant, isShortened: Bool
  ) async -> Samples {
    var samples = Samples()
    let method = self.method(method, for: target.origin)
    // No probe starts after the end of the budget, because a failure within too short a time limit says
    // nothing about the endpoint.
    let rest = end - timeSource.now()
    guard rest > .zero else {
      giveUp(target)
      return samples
    }
    let limit = isShortened ? rest : configuration.budget
    switch await probe(
      target, method, keepsConnection: target.keepsConnection, within: limit, isShortened: isShortened)
    {
    case .success(let report):
      if !report.reused { samples.connects.append(report.connect) }
      settle(target.origin.host)
    case .failure(let error):
      samples.failure = error.failure
      guard !error.isInconclusive else { return samples }
    }
    for _ in 0..<Self.furtherSampleCount where samples.failure == nil {
      let rest = end - timeSource.now()
      guard rest > .zero, !Task.isCancelled else { break }
      let result = await probe(
        target, method.probe.furtherSampleMethod, keepsConnection: false, within: rest, isShortened: true)
      guard case .success(let report) = result else { break }
      samples.connects.append(report.connect)
    }
    return samples
  }

  /// Tells the planner that the prober does not perform a probe. If this probe held the one
  /// attempt of a half-open endpoint, the planner gets the attempt back.
  private func giveUp(_ target: Target) {
    let never = LegError(LegFailure(.other, "the time limit passed before the probe"), isInconclusive: true)
    router.record(
      probe: .failure(never), of: target.address, for: target.origin, started: timeSource.now())
  }

  /// Takes one sample, and tells the planner the result if the method judges endpoints.
  ///
  /// - Parameters:
  ///   - keepsConnection: whether to keep the connection for requests.
  ///   - limit: the time limit of the sample.
  ///   - isShortened: whether `limit` is the rest of the budget and not the whole budget. A timeout then does
  ///     not count as a failure of the endpoint, because the limit may be shorter than the round trip to the
  ///     endpoint.
  private func probe(
    _ target: Target, _ method: ProbeMethod, keepsConnection: Bool, within limit: Duration, isShortened: Bool
  ) async -> Result<ConnectReport, LegError> {
    let probe = method.probe
    let sample = ProbeSample(
      target: target, limit: max(limit, .milliseconds(1)), started: timeSource.now(),
      isShortened: isShortened, keepsConnection: keepsConnection
    )
    let result = await probe.take(sample, by: self)
    counts.withLock { $0.add(result) }
    if probe.judgesEndpoint {
      router.record(probe: result, of: target.address, for: target.origin, started: sample.started)
    }
    return result
  }

  /// The probe method to use for an origin: the given method; for `nil`, TCP for an `http` origin and TLS for
  /// an `https` origin.
  func method(_ asked: ProbeMethod?, for origin: Origin) -> ProbeMethod {
    asked ?? (origin.scheme == .http ? .tcp : .tls)
  }
}
