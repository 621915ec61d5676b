import NetOptCore
import NetOptEngine
import NetOptLocking
import NetOptRouting
import Synchronization

/// Probes the endpoints of the list: at start, at the first request to a host of a long list, when a caller
/// asks for probes, and when the planner hands out due probes. Due probes are background probes, attempts of
/// half-open circuit breakers, certificate checks, and trial connections for requests that wait.
///
/// A probe with `tcp` or `tls` is a leg that stops at the gate and sends no request. A probe with `http`
/// sends a HEAD request. A probe with `icmp` sends an echo request and opens no connection. The connections
/// of the probes at start stay in the pool when they use HTTP/2, so the first request finds a ready
/// connection.
final class Prober: Sendable {
  /// The maximum number of endpoints of a list that the prober probes as a whole at start.
  static let mostAtStart = 256

  private enum HostState {
    /// No request has used the host yet.
    case unused
    /// No request has used the host yet, but an earlier run saved its ranking: no request waits for a probe.
    case remembered
    /// The prober probes the host, and no endpoint has answered yet. Holds the requests that wait.
    case waiting([UInt64: CheckedContinuation<Void, Never>])
    /// An endpoint has answered, or no endpoint will.
    case settled

    var isSettled: Bool { if case .settled = self { true } else { false } }

    /// Whether the first request to the host starts its probes.
    var isUnprobed: Bool {
      switch self {
      case .unused, .remembered: true
      case .waiting, .settled: false
      }
    }

    var waiters: [CheckedContinuation<Void, Never>] {
      if case .waiting(let continuations) = self { Array(continuations.values) } else { [] }
    }
  }

  private struct State {
    var list: EndpointList?
    var hosts: [String: HostState] = [:]
    /// The number of the last waiting request.
    var lastWait: UInt64 = 0
    /// The number of the last task.
    var lastTask: UInt64 = 0
    /// The running probe tasks.
    var tasks: [UInt64: Task<Void, Never>] = [:]
    /// The running probes that a caller asked for.
    var samplings: [UInt64: Task<[Target: Samples], Never>] = [:]
    var lastSampling: UInt64 = 0
    /// Called when probes have ended.
    var whenProbed: (@Sendable () -> Void)?
    var isStopped = false
  }

  let router: Router
  let transport: any Transport
  let configuration: ClientConfiguration.Probing
  let timeSource: any TimeSource
  /// The event loop for echo requests; `nil` when the program provides the transport.
  let loop: EventLoop?
  private let state: Locked<State>
  /// The number of hosts that are not settled.
  private let unsettled: Atomic<Int>

  /// The list whose endpoints the prober probes.
  var list: EndpointList? { state.withLock(\.list) }

  /// The number of running probe tasks.
  var taskCount: Int { state.withLock(\.tasks.count) }

  /// - Parameter known: the hosts whose ranking an earlier run saved.
  init(
    _ router: Router, _ engine: Engine, _ list: EndpointList?, known: Set<String>,
    _ configuration: ClientConfiguration.Probing, _ timeSource: any TimeSource
  ) {
    self.router = router
    transport = engine.transport
    loop = engine.loop
    self.configuration = configuration
    self.timeSource = timeSource
    var hosts: [String: HostState] = [:]
    if configuration.atStart, let list {
      for host in list.hosts.keys { hosts[host] = known.contains(host) ? .remembered : .unused }
    }
    unsettled = Atomic(hosts.count)
    state = Locked(State(list: list, hosts: hosts))
  }

  /// Sets a function that the prober calls when probes have ended: the probes of new hosts, and the probes
  /// that a caller asked for. The prober does not call the function at the end of a due probe.
  func whenProbed(_ handler: @escaping @Sendable () -> Void) { state.withLock { $0.whenProbed = handler } }

  /// Switches to another list. Probes at once the hosts with endpoints that they did not have in the old
  /// list, unless the list is long.
  func adopt(_ list: EndpointList) {
    let (others, waiting) = state.withLock { state in
      let others = list.hosts.filter { host, entry in
        let known = state.list?.hosts[host]
        let addresses = Set((known?.endpoints ?? []).map(\.address))
        return known?.port != entry.port || !entry.endpoints.allSatisfy { addresses.contains($0.address) }
      }
      let removed = state.hosts.filter { list.hosts[$0.key] == nil }
      state.list = list
      guard configuration.atStart, !state.isStopped else {
        return ([String](), removed.values.flatMap(\.waiters))
      }
      state.hosts = list.hosts.reduce(into: [:]) { $0[$1.key] = state.hosts[$1.key] ?? .unused }
      unsettled.store(state.hosts.values.count { !$0.isSettled }, ordering: .releasing)
      return (Array(others.keys), removed.values.flatMap(\.waiters))
    }
    for continuation in waiting { continuation.resume() }
    guard configuration.atStart, list.endpointCount <= Self.mostAtStart else { return }
    begin(direct(others))
  }

  /// Starts to probe the whole list, unless the list is long.
  func start() {
    guard configuration.atStart, let list, list.endpointCount <= Self.mostAtStart else { return }
    begin(direct(Array(list.hosts.keys)))
  }

  /// Starts anew in another network, with the hosts that are in use. The prober probes the other hosts at the
  /// first request to each, so that an idle client sends nothing in whatever network the machine is.
  ///
  /// - Parameter known: the hosts with a saved ranking in the new network.
  func probeAgain(known: Set<String>) {
    guard configuration.atStart, list != nil else { return }
    let inUse = router.withPlanner { planner, now in planner.hostsInUse(at: now) }
    let (tasks, hosts) = state.withLock { state -> ([Task<Void, Never>], [String]) in
      guard !state.isStopped else { return ([], []) }
      let hosts = state.hosts.filter { inUse.contains($0.key) || !$0.value.waiters.isEmpty }.map(\.key)
      // Waiting requests continue to wait, for the new probes.
      for (host, old) in state.hosts where old.waiters.isEmpty {
        state.hosts[host] = known.contains(host) ? .remembered : .unused
      }
      unsettled.store(state.hosts.values.count { !$0.isSettled }, ordering: .releasing)
      defer { state.tasks = [:] }
      return (Array(state.tasks.values), hosts)
    }
    for task in tasks { task.cancel() }
    begin(direct(hosts))
  }

  private func direct(_ hosts: [String]) -> [String] {
    hosts.filter { host in list?.origin(of: host).map(router.isDirect) ?? false }
  }

  /// Stops all probes, and resumes all waiting requests.
  func stop() {
    let (tasks, samplings, waiting) = state.withLock { state in
      state.isStopped = true
      defer {
        state.tasks = [:]
        state.hosts = state.hosts.mapValues { _ in .settled }
        unsettled.store(0, ordering: .releasing)
      }
      return (
        Array(state.tasks.values), Array(state.samplings.values), state.hosts.values.flatMap(\.waiters)
      )
    }
    for task in tasks { task.cancel() }
    for sampling in samplings { sampling.cancel() }
    for continuation in waiting { continuation.resume() }
  }

  // MARK: The first request

  /// Whether a request need not wait for a probe. Only the first requests to a host wait.
  func isSettled(_ request: NetOptRequest) -> Bool {
    // The usual case, without a look-up of the host.
    if unsettled.load(ordering: .acquiring) == 0 { return true }
    guard request.options.routing == .automatic else { return true }
    let origin = request.url.origin
    let isSettled = state.withLock { state in
      switch state.hosts[origin.host] {
      case .settled, nil: true
      case .unused, .remembered, .waiting: state.list?.hosts[origin.host]?.port != origin.port
      }
    }
    // A request through a proxy or over DNS does not need the result of a probe.
    return isSettled || !request.options.directDespiteProxy && !router.isDirect(origin)
  }

  /// Waits until an endpoint of the host has answered its first probe, all its probes have failed, or
  /// `firstRequestWait` has passed. Starts to probe the host if nothing has probed it yet.
  ///
  /// - Parameter deadline: the deadline of the call, which also ends the wait.
  func waitForFirstAnswer(to request: NetOptRequest, until deadline: MonotonicInstant?) async {
    let origin = request.url.origin
    // Under the lock: of two concurrent first requests, one starts the probes and both wait.
    let (id, isFirst, mustWait) = state.withLock { state in
      state.lastWait += 1
      let isFirst = state.hosts[origin.host]?.isUnprobed == true
      if case .remembered = state.hosts[origin.host] {
        state.hosts[origin.host] = .settled
        unsettled.subtract(1, ordering: .releasing)
        return (state.lastWait, isFirst, false)
      }
      if isFirst { state.hosts[origin.host] = .waiting([:]) }
      return (state.lastWait, isFirst, true)
    }
    if isFirst { begin([origin.host]) }
    guard mustWait else { return }
    let rest = deadline.map { $0 - timeSource.now() } ?? configuration.firstRequestWait
    let wait = min(rest, configuration.firstRequestWait)
    var limit: Task<Void, Never>?
    await withTaskCancellationHandler {
      // The state is read under the lock here: a probe may resume the continuation before this task is
      // suspended (docs/adr/0006).
      await withCheckedContinuation { continuation in
        let mustWait = state.withLock { state in
          guard !Task.isCancelled, case .waiting(var waiting) = state.hosts[origin.host] else { return false }
          waiting[id] = continuation
          state.hosts[origin.host] = .waiting(waiting)
          return true
        }
        guard mustWait else { return continuation.resume() }
        // The timer starts only when there is a wait to end.
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

  /// Ends the wait of one request; the other requests continue to wait.
  private func endWait(_ id: UInt64, for host: String) {
    let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard case .waiting(var waiting) = state.hosts[host], let waiter = waiting.removeValue(forKey: id)
      else { return nil }
      state.hosts[host] = .waiting(waiting)
      return waiter
    }
    continuation?.resume()
  }

  /// Ends the wait of all requests to a host.
  func settle(_ host: String) {
    let waiting = state.withLock { state in
      let old = state.hosts.updateValue(.settled, forKey: host)
      if old?.isSettled == false { unsettled.subtract(1, ordering: .releasing) }
      return old?.waiters ?? []
    }
    for continuation in waiting { continuation.resume() }
  }

  private func begin(_ hosts: [String]) {
    if hosts.isEmpty { return }
    state.withLock { state in
      guard !state.isStopped else { return }
      for host in hosts {
        switch state.hosts[host] {
        case .unused: state.hosts[host] = .waiting([:])
        case .remembered:
          state.hosts[host] = .settled
          unsettled.subtract(1, ordering: .releasing)
        case .waiting, .settled, nil: break
        }
      }
      state.lastTask += 1
      let id = state.lastTask
      state.tasks[id] = Task {
        _ = await self.sample(self.targets(of: hosts, isKept: true), method: self.configuration.method)
        self.state.withLock(\.whenProbed)?()
        // After a network change new probes replace the cancelled ones, and the requests wait for these.
        if Task.isCancelled { return }
        for host in hosts { self.settle(host) }
        self.state.withLock { $0.tasks[id] = nil }
      }
    }
  }

  // MARK: Probing

  /// Probes hosts over new connections and returns their ranking.
  ///
  /// - Throws: `invalidRequest` for a name that is not in the list.
  func probe(hosts: [String]?, method: ProbeMethod?) async throws(NetOptError) -> [HostProbe] {
    let list = list
    let names = hosts.map { $0.map { Origin.normalized(host: $0) } } ?? list?.hosts.keys.sorted() ?? []
    for name in names where list?.hosts[name] == nil {
      let known = list?.hosts.keys.sorted().prefix(8).joined(separator: ", ") ?? "no list is in use"
      throw NetOptError(
        .invalidRequest, phase: .list,
        "the IP list has no host \(HTTPURL.shown(given: name)); it has: \(known)")
    }
    let method = method ?? configuration.method
    let targets = targets(of: names, isKept: false)
    let sampling = Task { await self.sample(targets, method: method) }
    // Both `stop` and the cancellation of the caller's task cancel the samples.
    let id = begin(sampling)
    let samples = await withTaskCancellationHandler {
      await sampling.value
    } onCancel: {
      sampling.cancel()
    }
    end(id)
    state.withLock(\.whenProbed)?()
    return names.compactMap { name in result(name, method: method, samples) }
  }

  private func begin(_ sampling: Task<[Target: Samples], Never>) -> UInt64 {
    let (id, isStopped) = state.withLock { state in
      state.lastSampling += 1
      state.samplings[state.lastSampling] = sampling
      return (state.lastSampling, state.isStopped)
    }
    if isStopped { sampling.cancel() }
    return id
  }

  private func end(_ sampling: UInt64) { state.withLock { $0.samplings[sampling] = nil } }

  /// Starts due probes in a separate task and returns at once.
  func startProbes(_ probes: [DueProbe]) {
    state.withLock { state in
      guard !state.isStopped else { return }
      state.lastTask += 1
      let id = state.lastTask
      state.tasks[id] = Task {
        await self.probe(probes)
        self.state.withLock { $0.tasks[id] = nil }
      }
    }
  }

  /// Performs due probes and returns when they have ended. Certificate checks use TLS. The other probes use
  /// the configured method if a success with it shows that a failed endpoint works again. Otherwise they use
  /// the default method.
  func probe(_ due: [DueProbe]) async {
    if due.isEmpty { return }
    let method = configuration.method.flatMap { $0.probe.showsRecovery ? $0 : nil }
    func targets(_ due: [DueProbe]) -> [Target] {
      due.map { Target(origin: $0.origin, address: $0.address, isKept: $0.isKept) }
    }
    // Not `http`: a failed health check says nothing about the certificate.
    async let checks = sample(targets(due.filter(\.checksCertificate)), method: .tls)
    async let others = sample(targets(due.filter { !$0.checksCertificate }), method: method)
    _ = await (checks, others)
  }

  private func result(_ name: String, method: ProbeMethod?, _ samples: [Target: Samples]) -> HostProbe? {
    guard let entry = list?.hosts[name], let origin = list?.origin(of: name) else { return nil }
    let ranking = router.withPlanner { planner, now in planner.status(of: origin, at: now) }
    let endpoints = ranking.map { status in
      let found = samples[Target(origin: origin, address: status.endpoint.address, isKept: false)]
      let excluded = status.rank == nil ? status.lastFailure : nil
      return EndpointProbe(
        address: status.endpoint.address, region: status.endpoint.region, isp: status.endpoint.isp,
        rank: status.rank, rtt: status.rtt, samples: found?.connects ?? [], state: status.state,
        chosen: status.chosen, failure: found?.failure ?? excluded)
    }
    return HostProbe(
      host: name, port: entry.port, method: self.method(method, for: origin), endpoints: endpoints)
  }
}
