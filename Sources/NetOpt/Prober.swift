import NetOptCore
import NetOptLocking
import NetOptRouting

/// Pings the list's endpoints: at start, when a host of a long list is first used, and when it is asked to.
///
/// A probe is a leg that stops at the gate, so over HTTP/2 its connection is in the pool when the first request comes.
final class Prober: Sendable {
  /// Lists up to this size are probed as a whole at start.
  static let mostAtStart = 256
  /// TCP handshakes after the full sample.
  private static let furtherSamples = 2

  private enum HostState {
    /// Nobody has used the host yet.
    case unused
    /// Probing it, and no answer yet.
    case waiting([UInt64: UnsafeContinuation<Void, Never>])
    /// There was an answer, or there will not be one.
    case settled

    var isUnused: Bool { if case .unused = self { true } else { false } }

    var whoWaits: [UnsafeContinuation<Void, Never>] {
      if case .waiting(let continuations) = self { Array(continuations.values) } else { [] }
    }
  }

  private struct State {
    var list: EndpointList?
    var hosts: [String: HostState] = [:]
    /// Numbers those who wait.
    var lastWait: UInt64 = 0
    var tasks: [Task<Void, Never>] = []
    var isStopped = false
  }

  private let router: Router
  private let transport: any Transport
  private let configuration: ClientConfiguration.Probing
  private let timeSource: any TimeSource
  private let state: Locked<State>

  private var list: EndpointList? { state.withLock(\.list) }

  init(
    _ router: Router, _ transport: any Transport, _ list: EndpointList?,
    _ configuration: ClientConfiguration.Probing, _ timeSource: any TimeSource
  ) {
    self.router = router
    self.transport = transport
    self.configuration = configuration
    self.timeSource = timeSource
    let hosts = configuration.atStart ? list?.hosts.mapValues { _ in HostState.unused } : nil
    state = Locked(State(list: list, hosts: hosts ?? [:]))
  }

  /// Probes by another list from now on: at once the hosts that have endpoints which they had not before.
  func adopt(_ list: EndpointList) {
    let (others, waiting) = state.withLock { state in
      let others = list.hosts.filter { host, entry in
        let known = state.list?.hosts[host]
        let addresses = Set((known?.endpoints ?? []).map(\.address))
        return known?.port != entry.port || !entry.endpoints.allSatisfy { addresses.contains($0.address) }
      }
      let gone = state.hosts.filter { list.hosts[$0.key] == nil }
      state.list = list
      guard configuration.atStart, !state.isStopped else {
        return ([String](), gone.values.flatMap(\.whoWaits))
      }
      state.hosts = list.hosts.reduce(into: [:]) { $0[$1.key] = state.hosts[$1.key] ?? .unused }
      return (Array(others.keys), gone.values.flatMap(\.whoWaits))
    }
    for continuation in waiting { continuation.resume() }
    guard configuration.atStart, list.endpointCount <= Self.mostAtStart else { return }
    let direct = others.filter { host in list.origin(of: host).map(router.isDirect) ?? false }
    if !direct.isEmpty { begin(direct) }
  }

  /// Starts probing, unless the list is a long one.
  func start() {
    guard configuration.atStart, let list, list.endpointCount <= Self.mostAtStart else { return }
    let direct = list.hosts.keys.filter { host in list.origin(of: host).map(router.isDirect) ?? false }
    if !direct.isEmpty { begin(Array(direct)) }
  }

  /// Ends probing, and lets go of everyone who waits.
  func stop() {
    let (tasks, waiting) = state.withLock { state in
      state.isStopped = true
      defer {
        state.tasks = []
        state.hosts = state.hosts.mapValues { _ in .settled }
      }
      return (state.tasks, state.hosts.values.flatMap(\.whoWaits))
    }
    for task in tasks { task.cancel() }
    for continuation in waiting { continuation.resume() }
  }

  // MARK: The first request

  /// Waits until an endpoint of a host has answered its first probe, or all have failed, or the configured time is
  /// over. Starts probing when that has not been done. Returns at once for everything but a host's first requests.
  ///
  /// - Parameter deadline: when the call has to be over; nobody waits longer than that.
  func waitForFirstAnswer(
    of origin: Origin, _ options: RequestOptions, until deadline: MonotonicInstant?
  ) async {
    guard case .automatic = options.routing else { return }
    // The usual case, found without asking for the proxy or the calendar.
    let isSettled = state.withLock { state in
      switch state.hosts[origin.host] {
      case .settled, nil: true
      case .unused, .waiting: state.list?.hosts[origin.host]?.port != origin.port
      }
    }
    // A request that does not go to an endpoint has no use for an answer.
    guard !isSettled, options.directDespiteProxy || router.isDirect(origin) else { return }
    // Taken under the lock: of two first requests one begins, and both wait.
    let (id, isFirst) = state.withLock { state in
      state.lastWait += 1
      let isFirst = state.hosts[origin.host]?.isUnused == true
      if isFirst { state.hosts[origin.host] = .waiting([:]) }
      return (state.lastWait, isFirst)
    }
    if isFirst { begin([origin.host]) }
    let rest = deadline.map { $0 - timeSource.now() } ?? configuration.firstRequestWait
    let wait = min(rest, configuration.firstRequestWait)
    var limit: Task<Void, Never>?
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        let mustWait = state.withLock { state in
          guard !Task.isCancelled, case .waiting(var waiting) = state.hosts[origin.host] else { return false }
          waiting[id] = continuation
          state.hosts[origin.host] = .waiting(waiting)
          return true
        }
        guard mustWait else { return continuation.resume() }
        // Begun when there is something to end.
        limit = Task {
          try? await Task.sleep(for: wait)
          self.endWait(id, for: origin.host)
        }
      }
    } onCancel: {
      endWait(id, for: origin.host)
    }
    limit?.cancel()
  }

  /// One request waits no longer; the others do.
  private func endWait(_ id: UInt64, for host: String) {
    let continuation = state.withLock { state -> UnsafeContinuation<Void, Never>? in
      guard case .waiting(var waiting) = state.hosts[host], let mine = waiting.removeValue(forKey: id) else {
        return nil
      }
      state.hosts[host] = .waiting(waiting)
      return mine
    }
    continuation?.resume()
  }

  /// Nobody waits for a host any longer.
  private func settle(_ host: String) {
    let waiting = state.withLock { state in
      defer { state.hosts[host] = .settled }
      return state.hosts[host]?.whoWaits ?? []
    }
    for continuation in waiting { continuation.resume() }
  }

  private func begin(_ hosts: [String]) {
    state.withLock { state in
      guard !state.isStopped else { return }
      for host in hosts where state.hosts[host]?.isUnused == true { state.hosts[host] = .waiting([:]) }
      state.tasks.append(
        Task {
          _ = await self.sample(hosts, method: self.configuration.method, keep: true)
          for host in hosts { self.settle(host) }
        })
    }
  }

  // MARK: Probing

  /// Probes hosts over new connections and gives their ranking.
  ///
  /// - Throws: `invalidRequest` for a name that the list does not have.
  func probe(hosts: [String]?, method: ProbeMethod?) async throws(NetOptError) -> [HostProbe] {
    let list = list
    let names = hosts.map { $0.map { Origin.normalized(host: $0) } } ?? list?.hosts.keys.sorted() ?? []
    for name in names where list?.hosts[name] == nil {
      let known = list?.hosts.keys.sorted().prefix(8).joined(separator: ", ") ?? "no list is in use"
      throw NetOptError(.invalidRequest, phase: .list, "the IP list has no host \(name); it has: \(known)")
    }
    let samples = await sample(names, method: method ?? configuration.method, keep: false)
    return names.compactMap { name in result(name, method: method, samples) }
  }

  private func result(_ name: String, method: ProbeMethod?, _ samples: [Target: Samples]) -> HostProbe? {
    guard let entry = list?.hosts[name], let origin = list?.origin(of: name) else { return nil }
    let ranking = router.withPlanner { planner, now in planner.status(of: origin, at: now) }
    let endpoints = ranking.map { status in
      let found = samples[Target(origin: origin, address: status.endpoint.address)]
      let excluded = status.rank == nil ? status.lastFailure : nil
      return EndpointProbe(
        address: status.endpoint.address, region: status.endpoint.region, isp: status.endpoint.isp,
        rank: status.rank, rtt: status.rtt, samples: found?.connects ?? [], state: status.state,
        chosen: status.chosen, failure: found?.failure ?? excluded)
    }
    return HostProbe(
      host: name, port: entry.port, method: self.method(method, for: origin), endpoints: endpoints)
  }

  private struct Target: Hashable {
    let origin: Origin
    let address: IPAddress
  }

  private struct Samples {
    var connects: [Duration] = []
    var failure: LegFailure?
  }

  /// Samples all endpoints of some hosts, so many at once as the configuration allows, within its budget.
  private func sample(_ hosts: [String], method: ProbeMethod?, keep: Bool) async -> [Target: Samples] {
    let list = list
    var targets = hosts.flatMap { host -> [Target] in
      guard let entry = list?.hosts[host], let origin = list?.origin(of: host) else { return [] }
      return entry.endpoints.map { Target(origin: origin, address: $0.address) }
    }[...]
    let end = timeSource.now() + configuration.budget
    return await withTaskGroup(of: (Target, Samples).self) { group in
      var results: [Target: Samples] = [:]
      var underWay = 0
      while !targets.isEmpty || underWay > 0 {
        while underWay < max(1, configuration.concurrency), let target = targets.popFirst() {
          underWay += 1
          group.addTask { (target, await self.sample(target, method: method, keep: keep, until: end)) }
        }
        guard let (target, samples) = await group.next() else { break }
        underWay -= 1
        results[target] = samples
      }
      return results
    }
  }

  /// One full sample, then some of TCP alone.
  private func sample(
    _ target: Target, method: ProbeMethod?, keep: Bool, until end: MonotonicInstant
  ) async -> Samples {
    var samples = Samples()
    // Beyond the budget nothing is dialled: a limit that was cut says nothing about the endpoint.
    guard timeSource.now() < end else { return samples }
    let first = await connect(target, method: self.method(method, for: target.origin), keep: keep, until: end)
    switch first {
    case .success(let report):
      if !report.reused { samples.connects.append(report.connect) }
      settle(target.origin.host)
    case .failure(let error):
      samples.failure = error.failure
      guard !error.isCancellation else { return samples }
    }
    for _ in 0..<Self.furtherSamples where samples.failure == nil {
      guard timeSource.now() < end, !Task.isCancelled else { break }
      guard case .success(let report) = await connect(target, method: .tcp, keep: false, until: end) else {
        break
      }
      samples.connects.append(report.connect)
    }
    return samples
  }

  private func connect(
    _ target: Target, method: ProbeMethod, keep: Bool, until end: MonotonicInstant
  ) async -> Result<ConnectReport, LegError> {
    // Without TLS a leg ends where TCP is connected.
    let origin =
      method == .tls ? target.origin : Origin(.http, host: target.origin.host, port: target.origin.port)
    let endpoint = Endpoint(target.address, port: target.origin.port)
    let result: Result<ConnectReport, LegError>
    do throws(LegError) {
      let limit = max(end - timeSource.now(), .milliseconds(1))
      result = .success(try await transport.connect(to: endpoint, of: origin, within: limit, keep: keep))
    } catch {
      result = .failure(error)
    }
    router.withPlanner { planner, now in
      planner.record(probe: result, of: target.address, for: target.origin, at: now)
    }
    return result
  }

  private func method(_ asked: ProbeMethod?, for origin: Origin) -> ProbeMethod {
    asked ?? (origin.scheme == .http ? .tcp : .tls)
  }
}
