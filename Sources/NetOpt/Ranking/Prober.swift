import NetOptCore
import NetOptEngine
import NetOptLocking
import NetOptRouting
import Synchronization

/// Pings the list's endpoints: at start, when a host of a long list is first used, and when it is asked to.
///
/// A probe is a leg that stops at the gate, so over HTTP/2 its connection is in the pool when the first request comes.
final class Prober: Sendable {
  /// Lists up to this size are probed as a whole at start.
  static let mostAtStart = 256

  private enum HostState {
    /// Nobody has used the host yet.
    case unused
    /// Nobody has used it yet, but what an earlier run has learned is known: nobody waits for a probe.
    case remembered
    /// Probing it, and no answer yet.
    case waiting([UInt64: CheckedContinuation<Void, Never>])
    /// There was an answer, or there will not be one.
    case settled

    var isSettled: Bool { if case .settled = self { true } else { false } }

    /// Whether its first request starts probing.
    var isUntouched: Bool {
      switch self {
      case .unused, .remembered: true
      case .waiting, .settled: false
      }
    }

    var whoWaits: [CheckedContinuation<Void, Never>] {
      if case .waiting(let continuations) = self { Array(continuations.values) } else { [] }
    }
  }

  private struct State {
    var list: EndpointList?
    var hosts: [String: HostState] = [:]
    /// Numbers those who wait.
    var lastWait: UInt64 = 0
    /// Numbers the tasks.
    var lastTask: UInt64 = 0
    /// What probes now.
    var tasks: [UInt64: Task<Void, Never>] = [:]
    /// Probes that somebody has asked for.
    var samplings: [UInt64: Task<[Target: Samples], Never>] = [:]
    var lastSampling: UInt64 = 0
    /// Is told when probes have ended.
    var whenProbed: (@Sendable () -> Void)?
    var isStopped = false
  }

  let router: Router
  let transport: any Transport
  let configuration: ClientConfiguration.Probing
  let timeSource: any TimeSource
  /// The loop for echo requests; none on a transport of one's own.
  let loop: EventLoop?
  private let state: Locked<State>
  /// How many hosts are not settled.
  private let unsettled: Atomic<Int>

  /// The list by which is probed.
  var list: EndpointList? { state.withLock(\.list) }

  /// How many tasks probe hosts.
  var taskCount: Int { state.withLock(\.tasks.count) }

  /// - Parameter known: the hosts of which an earlier run's ranking is known.
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

  /// Has somebody told when probes have ended that were not given out as due: those at start, and those that were asked for.
  func whenProbed(_ tell: @escaping @Sendable () -> Void) { state.withLock { $0.whenProbed = tell } }

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
      unsettled.store(state.hosts.values.count { !$0.isSettled }, ordering: .releasing)
      return (Array(others.keys), gone.values.flatMap(\.whoWaits))
    }
    for continuation in waiting { continuation.resume() }
    guard configuration.atStart, list.endpointCount <= Self.mostAtStart else { return }
    begin(direct(others))
  }

  /// Starts probing, unless the list is a long one.
  func start() {
    guard configuration.atStart, let list, list.endpointCount <= Self.mostAtStart else { return }
    begin(direct(Array(list.hosts.keys)))
  }

  /// Begins anew in another network, with the hosts that are in use. The others are probed when they are first used there, so
  /// that a client that sends nothing costs nothing wherever its machine goes.
  ///
  /// - Parameter known: the hosts whose ranking in that network is known.
  func probeAgain(known: Set<String>) {
    guard configuration.atStart, list != nil else { return }
    let inUse = router.withPlanner { planner, now in planner.hostsInUse(at: now) }
    let (tasks, hosts) = state.withLock { state -> ([Task<Void, Never>], [String]) in
      guard !state.isStopped else { return ([], []) }
      let hosts = state.hosts.filter { inUse.contains($0.key) || !$0.value.whoWaits.isEmpty }.map(\.key)
      // Who waits goes on waiting, for the probes that come.
      for (host, old) in state.hosts where old.whoWaits.isEmpty {
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

  /// Ends probing, and lets go of everyone who waits.
  func stop() {
    let (tasks, samplings, waiting) = state.withLock { state in
      state.isStopped = true
      defer {
        state.tasks = [:]
        state.hosts = state.hosts.mapValues { _ in .settled }
        unsettled.store(0, ordering: .releasing)
      }
      return (
        Array(state.tasks.values), Array(state.samplings.values), state.hosts.values.flatMap(\.whoWaits)
      )
    }
    for task in tasks { task.cancel() }
    for sampling in samplings { sampling.cancel() }
    for continuation in waiting { continuation.resume() }
  }

  // MARK: The first request

  /// Whether a request has nothing to wait for: everything but a host's first requests.
  func isSettled(_ request: NetOptRequest) -> Bool {
    // The usual case, found without looking for the host.
    if unsettled.load(ordering: .acquiring) == 0 { return true }
    guard request.options.routing == .automatic else { return true }
    let origin = request.url.origin
    let isSettled = state.withLock { state in
      switch state.hosts[origin.host] {
      case .settled, nil: true
      case .unused, .remembered, .waiting: state.list?.hosts[origin.host]?.port != origin.port
      }
    }
    // A request that does not go to an endpoint has no use for an answer.
    return isSettled || !request.options.directDespiteProxy && !router.isDirect(origin)
  }

  /// Waits until an endpoint of a host has answered its first probe, or all have failed, or the configured time is
  /// over. Starts probing when that has not been done.
  ///
  /// - Parameter deadline: when the call has to be over; nobody waits longer than that.
  func waitForFirstAnswer(to request: NetOptRequest, until deadline: MonotonicInstant?) async {
    let origin = request.url.origin
    // Taken under the lock: of two first requests one begins, and both wait.
    let (id, isFirst, mustWait) = state.withLock { state in
      state.lastWait += 1
      let isFirst = state.hosts[origin.host]?.isUntouched == true
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
      // Checked: a probe may resume it before this task is suspended (docs/adr/0006).
      await withCheckedContinuation { continuation in
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
    let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard case .waiting(var waiting) = state.hosts[host], let mine = waiting.removeValue(forKey: id) else {
        return nil
      }
      state.hosts[host] = .waiting(waiting)
      return mine
    }
    continuation?.resume()
  }

  /// Nobody waits for a host any longer.
  func settle(_ host: String) {
    let waiting = state.withLock { state in
      let old = state.hosts.updateValue(.settled, forKey: host)
      if old?.isSettled == false { unsettled.subtract(1, ordering: .releasing) }
      return old?.whoWaits ?? []
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
        // Those who wait go on waiting when others have taken this one's place.
        if Task.isCancelled { return }
        for host in hosts { self.settle(host) }
        self.state.withLock { $0.tasks[id] = nil }
      }
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
      throw NetOptError(
        .invalidRequest, phase: .list,
        "the IP list has no host \(HTTPURL.shown(given: name)); it has: \(known)")
    }
    let targets = targets(of: names, isKept: false)
    let sampling = Task {
      await self.sample(targets, method: method ?? self.configuration.method)
    }
    // The end of the client ends it, and so does the end of the caller's task.
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

  /// Tries connections to endpoints beside everything else.
  func tryConnections(_ probes: [DueProbe]) {
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

  /// Probes endpoints whose turn it is.
  func probe(_ due: [DueProbe]) async {
    if due.isEmpty { return }
    let method = configuration.method.flatMap { $0.probe.showsRecovery ? $0 : nil }
    func targets(_ due: [DueProbe]) -> [Target] {
      due.map { Target(origin: $0.origin, address: $0.address, isKept: $0.isKept) }
    }
    // A health check that fails shows nothing of the certificate.
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
