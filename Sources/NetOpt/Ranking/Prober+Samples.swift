import NetOptCore
import NetOptRouting

// The part of the prober that takes samples of endpoints.

extension Prober {
  /// The number of quick samples after the full sample.
  private static let furtherSampleCount = 2

  /// An endpoint to probe.
  struct Target: Hashable {
    let origin: Origin
    let address: IPAddress
    /// Whether to keep the connection for requests, if the transport can keep it.
    let isKept: Bool
  }

  /// The result of probing an endpoint.
  struct Samples {
    var connects: [Duration] = []
    var failure: LegFailure?
  }

  /// All endpoints of the given hosts of the list.
  func targets(of hosts: [String], isKept: Bool) -> [Target] {
    hosts.flatMap { host -> [Target] in
      guard let entry = list?.hosts[host], let origin = list?.origin(of: host) else { return [] }
      return entry.endpoints.map { Target(origin: origin, address: $0.address, isKept: isKept) }
    }
  }

  /// Probes endpoints within the configured budget, at most `concurrency` of them at once.
  func sample(_ targets: [Target], method: ProbeMethod?) async -> [Target: Samples] {
    var targets = targets[...]
    let end = timeSource.now() + configuration.budget
    return await withTaskGroup(of: (Target, Samples).self) { group in
      var results: [Target: Samples] = [:]
      var underWay = 0
      while !targets.isEmpty || underWay > 0 {
        while underWay < max(1, configuration.concurrency), let target = targets.popFirst() {
          underWay += 1
          let isCut = !results.isEmpty
          group.addTask {
            (target, await self.sample(target, method: method, until: end, isCut: isCut))
          }
        }
        guard let (target, samples) = await group.next() else { break }
        underWay -= 1
        results[target] = samples
      }
      return results
    }
  }

  /// Takes one full sample, then quick samples: TCP handshakes, or echo requests.
  ///
  /// - Parameter isCut: whether the limit of the full sample is the rest of the budget, because another
  ///   endpoint has finished before. Otherwise the limit is the whole budget.
  private func sample(
    _ target: Target, method: ProbeMethod?, until end: MonotonicInstant, isCut: Bool
  ) async -> Samples {
    var samples = Samples()
    let method = self.method(method, for: target.origin)
    // No probe starts after the end of the budget: a probe with too short a limit says nothing about the
    // endpoint.
    let rest = end - timeSource.now()
    guard rest > .zero else {
      giveUp(target)
      return samples
    }
    let limit = isCut ? rest : configuration.budget
    switch await probe(target, method, keep: target.isKept, within: limit, isCut: isCut) {
    case .success(let report):
      if !report.reused { samples.connects.append(report.connect) }
      settle(target.origin.host)
    case .failure(let error):
      samples.failure = error.failure
      guard !error.isCancellation else { return samples }
    }
    for _ in 0..<Self.furtherSampleCount where samples.failure == nil {
      let rest = end - timeSource.now()
      guard rest > .zero, !Task.isCancelled else { break }
      let result = await probe(
        target, method.probe.furtherSampleMethod, keep: false, within: rest, isCut: true)
      guard case .success(let report) = result else { break }
      samples.connects.append(report.connect)
    }
    return samples
  }

  /// Tells the planner that a probe was given up before it began. If the planner had granted the probe the
  /// one attempt of a half-open endpoint, the planner takes the attempt back.
  private func giveUp(_ target: Target) {
    let never = LegError(LegFailure(.other, "the time limit passed before the probe"), isCancellation: true)
    router.record(
      probe: .failure(never), of: target.address, for: target.origin, started: timeSource.now())
  }

  /// Takes one sample.
  ///
  /// - Parameter isCut: whether `limit` is the rest of the budget. A timeout then does not count against the
  ///   endpoint: the limit may be shorter than the round trip to the endpoint.
  private func probe(
    _ target: Target, _ method: ProbeMethod, keep: Bool, within limit: Duration, isCut: Bool
  ) async -> Result<ConnectReport, LegError> {
    let probe = method.probe
    let sample = ProbeSample(
      target: target, limit: max(limit, .milliseconds(1)), started: timeSource.now(), isCut: isCut, keep: keep
    )
    let result = await probe.take(sample, by: self)
    if probe.judgesEndpoint {
      router.record(probe: result, of: target.address, for: target.origin, started: sample.started)
    }
    return result
  }

  func method(_ asked: ProbeMethod?, for origin: Origin) -> ProbeMethod {
    asked ?? (origin.scheme == .http ? .tcp : .tls)
  }
}
