import NetOptCore
import NetOptEngine
import NetOptRouting

// How endpoints are sampled.

extension Prober {
  /// Quick samples after the full one.
  private static let furtherSamples = 2

  /// An endpoint that is probed.
  struct Target: Hashable {
    let origin: Origin
    let address: IPAddress
    /// Whether a connection to it is kept for requests, where it can be.
    let isKept: Bool
  }

  /// What probing an endpoint gave.
  struct Samples {
    var connects: [Duration] = []
    var failure: LegFailure?
  }

  /// All endpoints of some hosts of the list.
  func targets(of hosts: [String], isKept: Bool) -> [Target] {
    hosts.flatMap { host -> [Target] in
      guard let entry = list?.hosts[host], let origin = list?.origin(of: host) else { return [] }
      return entry.endpoints.map { Target(origin: origin, address: $0.address, isKept: isKept) }
    }
  }

  /// Samples endpoints, so many at once as the configuration allows, within its budget.
  func sample(_ targets: [Target], method: ProbeMethod?) async -> [Target: Samples] {
    var targets = targets[...]
    let end = timeSource.now() + configuration.budget
    return await withTaskGroup(of: (Target, Samples).self) { group in
      var results: [Target: Samples] = [:]
      var underWay = 0
      while !targets.isEmpty || underWay > 0 {
        while underWay < max(1, configuration.concurrency), let target = targets.popFirst() {
          underWay += 1
          let isLate = !results.isEmpty
          group.addTask {
            (target, await self.sample(target, method: method, until: end, isLate: isLate))
          }
        }
        guard let (target, samples) = await group.next() else { break }
        underWay -= 1
        results[target] = samples
      }
      return results
    }
  }

  /// One full sample, then some quick ones: of TCP alone, or echoes.
  ///
  /// - Parameter isLate: whether others went before, so that it has what they left of the budget.
  private func sample(
    _ target: Target, method: ProbeMethod?, until end: MonotonicInstant, isLate: Bool
  ) async -> Samples {
    var samples = Samples()
    let method = self.method(method, for: target.origin)
    // Beyond the budget nothing is dialled: a limit that was cut says nothing about the endpoint.
    let rest = end - timeSource.now()
    guard rest > .zero else {
      giveUp(target)
      return samples
    }
    let limit = isLate ? rest : configuration.budget
    switch await probe(target, method, keep: target.isKept, within: limit, isCut: isLate) {
    case .success(let report):
      if !report.reused { samples.connects.append(report.connect) }
      settle(target.origin.host)
    case .failure(let error):
      samples.failure = error.failure
      guard !error.isCancellation else { return samples }
    }
    for _ in 0..<Self.furtherSamples where samples.failure == nil {
      let rest = end - timeSource.now()
      guard rest > .zero, !Task.isCancelled else { break }
      let quick = method == .icmp ? ProbeMethod.icmp : .tcp
      let result = await probe(target, quick, keep: false, within: rest, isCut: true)
      guard case .success(let report) = result else { break }
      samples.connects.append(report.connect)
    }
    return samples
  }

  /// A probe that was due and is not made gives back what it had taken.
  private func giveUp(_ target: Target) {
    let never = LegError(LegFailure(.other, "there was no time left for it"), isCancellation: true)
    router.record(
      probe: .failure(never), of: target.address, for: target.origin, started: timeSource.now())
  }

  /// Takes one sample.
  ///
  /// - Parameter isCut: whether the limit is what is left of the budget. What an endpoint has not done by then is not held
  ///   against it: the limit may be shorter than the way to it.
  private func probe(
    _ target: Target, _ method: ProbeMethod, keep: Bool, within limit: Duration, isCut: Bool
  ) async -> Result<ConnectReport, LegError> {
    let started = timeSource.now()
    let limit = max(limit, .milliseconds(1))
    let result: Result<ConnectReport, LegError>
    switch method {
    case .icmp: return await echo(target, within: limit, started)
    case .http: result = await askForHealth(target, within: limit, isCut: isCut, keep: keep, started)
    case .tcp, .tls:
      // Without TLS a leg ends where TCP is connected.
      let origin =
        method == .tls ? target.origin : Origin(.http, host: target.origin.host, port: target.origin.port)
      do throws(LegError) {
        let endpoint = IPEndpoint(target.address, port: target.origin.port)
        result = .success(try await transport.connect(to: endpoint, of: origin, within: limit, keep: keep))
      } catch {
        let isExcused = isCut && error.failure.isTimeout
        result = .failure(LegError(error.failure, isCancellation: error.isCancellation || isExcused))
      }
    }
    router.record(probe: result, of: target.address, for: target.origin, started: started)
    return result
  }

  func method(_ asked: ProbeMethod?, for origin: Origin) -> ProbeMethod {
    asked ?? (origin.scheme == .http ? .tcp : .tls)
  }

  // MARK: ICMP

  /// Pings an endpoint. What comes of it is a measurement and never a failure of the endpoint's.
  private func echo(
    _ target: Target, within limit: Duration, _ started: MonotonicInstant
  ) async -> Result<ConnectReport, LegError> {
    guard let loop else {
      return .failure(
        LegError(LegFailure(.other, "echo requests need a client with a transport of netopt's own")))
    }
    let result = await Echo.roundTrip(to: target.address, within: limit, on: loop)
    if case .success(let time) = result, router.isOfThisNetwork(started) {
      router.withPlanner { planner, now in
        planner.record(roundTrip: time, of: target.address, for: target.origin, at: now)
      }
    }
    return result.map { ConnectReport(connect: $0) }
  }

  // MARK: HTTP

  /// Asks for the host's health path along one leg.
  private func askForHealth(
    _ target: Target, within limit: Duration, isCut: Bool, keep: Bool, _ started: MonotonicInstant
  ) async -> Result<ConnectReport, LegError> {
    let health = list?.hosts[target.origin.host]?.health
    let path = health?.path ?? "/"
    var options = RequestOptions()
    options.timeout = limit
    // The call's deadline is the limit; libcurl's own comes behind it.
    options.connectTimeout = limit + .seconds(1)
    options.connection = keep ? .pooled : .fresh
    let request = NetOptRequest(.head, HTTPURL(origin: target.origin, target: path), options: options)
    let plan = RoutePlan(
      origin: target.origin, policy: .probe,
      legs: [RoutePlan.Leg(.address(target.address), source: .list)],
      multiplexes: target.origin.scheme == .https)
    let context = CallContext(id: 0, started: started, deadline: started + limit)
    do throws(NetOptError) {
      let response = try await transport.execute(request, along: plan, in: context)
      let isFine = health.map { response.status == $0.expect } ?? (response.status < 500)
      guard isFine else {
        let expected = health.map { "\($0.expect)" } ?? "less than 500"
        return .failure(
          LegError(
            LegFailure(.unhealthy, "HEAD \(path) was answered with \(response.status), not with \(expected)"))
        )
      }
      return .success(ConnectReport(response.route))
    } catch {
      return .failure(LegError(healthCheck: error, path, isCut: isCut))
    }
  }
}

extension ConnectReport {
  /// What the connection of a response took.
  fileprivate init(_ route: RouteReport) {
    guard let leg = route.winner, !leg.reused, let connected = leg.connected else {
      self.init(connect: .zero, reused: true)
      return
    }
    self.init(connect: connected - leg.started, tls: leg.secured.map { $0 - connected })
  }
}

extension LegError {
  /// Why a health check failed: its connection, or what came on it.
  ///
  /// - Parameter isCut: whether its limit was shorter than the endpoint's.
  fileprivate init(healthCheck error: NetOptError, _ path: String, isCut: Bool) {
    let isExcused = isCut && error.code == .timeout
    let isCancellation = error.code == .cancelled || error.code == .shutDown || isExcused
    if let leg = error.route?.legs.last, leg.outcome == .failed, let failure = leg.failure {
      self.init(failure, isCancellation: isCancellation)
    } else if error.route?.winner == nil, error.code == .timeout {
      self.init(LegFailure(.connectTimeout, error.message), isCancellation: isCancellation)
    } else {
      self.init(LegFailure(.unhealthy, "HEAD \(path): \(error.message)"), isCancellation: isCancellation)
    }
  }
}

extension LegFailure {
  /// Whether it is that something took too long.
  fileprivate var isTimeout: Bool { kind == .connectTimeout || kind == .tlsTimeout }
}
