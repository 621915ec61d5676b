import NetOptCore
import NetOptEngine
import NetOptLocking
import NetOptRouting
import Synchronization

/// Probes the endpoints of the list. The *first probes* of a host run at the start of the client, after a
/// change of the list or of the network, or at the first request to the host. Further probes run when a
/// caller asks for them. *Due probes* run when the planner asks for them: background probes, attempts of
/// half-open circuit breakers, certificate checks, and trial connections for requests that wait.
///
/// A probe with `tcp` or `tls` is a leg that stops at the gate and sends no request. A probe with `http`
/// sends a HEAD request. A probe with `icmp` sends an echo request and opens no connection. When the
/// connection of a first probe uses HTTP/2, it stays in the pool, so the first request finds a ready
/// connection. Safe from any thread.
final class Prober: Sendable {
  /// The maximum number of endpoints of a list whose hosts the prober probes before the first requests. With a
  /// longer list, the first request to each host starts the probes of that host.
  static let mostAtStart = 256

  /// How far the first probes of a host have come, and whether requests wait for them.
  private enum HostState {
    /// Nothing has probed the host in this network yet. The first request starts the probes, and waits for
    /// them.
    case unused
    /// Nothing has probed the host in this network yet, but its ranking was restored from an earlier run or
    /// an earlier stay in this network. The first request starts the probes, and does not wait for them.
    case remembered
    /// The first probes of the host run, and no endpoint has answered yet. The value has the continuations of
    /// the requests that wait, by number.
    case waiting([UInt64: CheckedContinuation<Void, Never>])
    /// Requests do not wait: an endpoint has answered, all first probes have ended without an answer, the
    /// first probes of a `remembered` host have begun, or the prober has stopped.
    case settled

    var isSettled: Bool { if case .settled = self { true } else { false } }

    /// Whether nothing has probed the host yet, so that a first request must start the probes.
    var isUnprobed: Bool {
      switch self {
      case .unused, .remembered: true
      case .waiting, .settled: false
      }
    }

    /// The continuations of the requests that wait for the first probes.
    var waiters: [CheckedContinuation<Void, Never>] {
      if case .waiting(let continuations) = self { Array(continuations.values) } else { [] }
    }
  }

  private struct State {
    var list: EndpointList?
    /// The states of the hosts of the list, by name. A host without a state counts as settled. If
    /// `Probing.atStart` is false, a host has no state or is settled.
    var hosts: [String: HostState] = [:]
    /// The number of the last waiting request.
    var lastWait: UInt64 = 0
    /// The number of the last task in `tasks`.
    var lastTask: UInt64 = 0
    /// The running tasks of first probes and of `startProbes`, by number.
    var tasks: [UInt64: Task<Void, Never>] = [:]
    /// The running probes that a caller asked for, by number.
    var samplings: [UInt64: Task<[Target: Samples], Never>] = [:]
    /// The number of the last entry in `samplings`.
    var lastSampling: UInt64 = 0
    /// Called when first probes, or probes that a caller asked for, have ended.
    var whenProbed: (@Sendable () -> Void)?
    var isStopped = false
  }

  let router: Router
  let transport: any Transport
  let configuration: ClientConfiguration.Probing
  let timeSource: any TimeSource
  /// The event loop for ICMP echo requests; `nil` when the program provides the transport.
  let loop: EventLoop?
  private let state: Locked<State>
  /// How many samples ended in each way.
  let counts = Locked(ProbeCounts())
  /// The number of hosts that are not settled. Not in `state`: every request reads it, without the lock.
  private let unsettled: Atomic<Int>

  /// The list whose endpoints the prober probes; `nil` without a list.
  var list: EndpointList? { state.withLock(\.list) }
  /// The number of running tasks of first probes and of `startProbes`.
  var taskCount: Int { state.withLock(\.tasks.count) }

  /// - Parameter known: the names of the hosts whose ranking an earlier run saved.
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

  /// Sets a function that the prober calls when first probes, or probes that a caller asked for, have ended.
  /// The prober does not call it when due probes have ended.
  func whenProbed(_ handler: @escaping @Sendable () -> Void) { state.withLock { $0.whenProbed = handler } }

  /// Switches to another list. If `probesWhole` holds for the new list, probes the hosts that are new, have a
  /// new endpoint or have another port. The requests that wait for the probes of a host that is not in the new
  /// list continue at once.
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
    if probesWhole(list) { begin(direct(others)) }
  }

  /// Probes all hosts of the list, if `probesWhole` holds for the list.
  func start() { if let list, probesWhole(list) { begin(direct(Array(list.hosts.keys))) } }

  /// Whether the prober probes the hosts of a list before the first requests to them.
  private func probesWhole(_ list: EndpointList) -> Bool {
    configuration.atStart && configuration.includesUnusedHosts && list.endpointCount <= Self.mostAtStart
  }

  /// Starts anew in another network. Cancels the tasks of first probes and of `startProbes`. Then probes the
  /// hosts that are in use, and the hosts for which requests wait. The first request to any other host starts
  /// the probes of that host. So an idle client sends nothing, whichever networks the machine joins.
  ///
  /// - Parameter known: the names of the hosts for which the planner has a ranking in the new network.
  func probeAgain(known: Set<String>) {
    guard configuration.atStart, list != nil else { return }
    let inUse = router.withPlanner { planner, now in planner.hostsInUse(at: now) }
    let (tasks, hosts) = state.withLock { state -> ([Task<Void, Never>], [String]) in
      guard !state.isStopped else { return ([], []) }
      let hosts = state.hosts.filter { inUse.contains($0.key) || !$0.value.waiters.isEmpty }.map(\.key)
      // Requests that wait continue to wait, now for the new probes.
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

  /// Returns the origins of those of the hosts whose requests may go to endpoints of the list
  /// (`Router.isDirect`).
  private func direct(_ hosts: [String]) -> [Origin] {
    hosts.compactMap(router.usedOrigin).filter(router.isDirect)
  }

  /// Stops all probes, and lets all waiting requests continue.
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

  /// Whether a request need not wait for a probe. If false, the request starts the first probes of its host,
  /// or waits for their result.
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

  /// Waits until an endpoint of the host has answered a probe, all first probes of the host have ended, or
  /// `firstRequestWait` has passed. Starts the first probes if nothing has probed the host yet. Does not wait
  /// when the planner knows the ranking of the host from before.
  ///
  /// - Parameter deadline: the deadline of the call, which also ends the wait; `nil` for a call without a
  ///   time limit.
  func waitForFirstAnswer(to request: NetOptRequest, until deadline: MonotonicInstant?) async {
    let origin = request.url.origin
    // This decision is made under the lock. So of two concurrent first requests, only one starts the probes,
    // and both wait.
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
    if isFirst { begin([origin]) }
    guard mustWait else { return }
    let rest = deadline.map { $0 - timeSource.now() } ?? configuration.firstRequestWait
    let wait = min(rest, configuration.firstRequestWait)
    var limit: Task<Void, Never>?
    await withTaskCancellationHandler {
      // The state is read again under the lock, because a probe may have answered before this task was
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

  /// Ends the wait of one request. The other requests to the host continue to wait.
  private func endWait(_ id: UInt64, for host: String) {
    let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard case .waiting(var waiting) = state.hosts[host], let waiter = waiting.removeValue(forKey: id)
      else { return nil }
      state.hosts[host] = .waiting(waiting)
      return waiter
    }
    continuation?.resume()
  }

  /// Marks a host as settled, and lets all requests that wait for its first probes continue.
  func settle(_ host: String) {
    let waiting = state.withLock { state in
      let old = state.hosts.updateValue(.settled, forKey: host)
      if old?.isSettled == false { unsettled.subtract(1, ordering: .releasing) }
      return old?.waiters ?? []
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Starts the first probes of the hosts of origins in a task. When the probes have ended, the hosts are
  /// settled.
  private func begin(_ origins: [Origin]) {
    if origins.isEmpty { return }
    let hosts = origins.map(\.host)
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
        _ = await self.sample(
          self.targets(of: origins, keepsConnection: true), method: self.configuration.method)
        self.state.withLock(\.whenProbed)?()
        // Only `probeAgain` and `stop` cancel this task. After `probeAgain`, the requests wait for the new
        // probes.
        if Task.isCancelled { return }
        for host in hosts { self.settle(host) }
        self.state.withLock { $0.tasks[id] = nil }
      }
    }
  }

  // MARK: Probing

  /// Probes hosts and returns the ranking of their endpoints. Each sample opens a new connection, except a
  /// sample with `icmp`, which opens none.
  ///
  /// - Parameters:
  ///   - hosts: the names of the hosts; `nil` for all hosts of the list.
  ///   - method: the probe method; `nil` for the configured method.
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
    // The first request of a scheme may come meanwhile.
    let origins = names.compactMap(router.usedOrigin)
    let targets = targets(of: origins, keepsConnection: false)
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
    return origins.compactMap { origin in result(origin, method: method, samples) }
  }

  /// Adds the task of probes that a caller asked for to `samplings`, so that `stop` can cancel it. Returns
  /// the number of the new entry.
  private func begin(_ sampling: Task<[Target: Samples], Never>) -> UInt64 {
    let (id, isStopped) = state.withLock { state in
      state.lastSampling += 1
      state.samplings[state.lastSampling] = sampling
      return (state.lastSampling, state.isStopped)
    }
    if isStopped { sampling.cancel() }
    return id
  }

  /// Removes the entry with the number `sampling` from `samplings`.
  private func end(_ sampling: UInt64) { state.withLock { $0.samplings[sampling] = nil } }

  /// Starts due probes in a task and returns at once.
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

  /// Performs due probes, and returns when they have ended. Certificate checks use TLS. All other due probes
  /// use the configured method if a success with this method shows that a failed endpoint works again
  /// (`Probe.showsRecovery`). Otherwise they use the default method of their origin.
  func probe(_ due: [DueProbe]) async {
    if due.isEmpty { return }
    let method = configuration.method.flatMap { $0.probe.showsRecovery ? $0 : nil }
    func targets(_ due: [DueProbe]) -> [Target] {
      due.map { Target(origin: $0.origin, address: $0.address, keepsConnection: $0.keepsConnection) }
    }
    // Certificate checks do not use `http`, because a failed health check says nothing about the certificate.
    async let checks = sample(targets(due.filter(\.checksCertificate)), method: .tls)
    async let others = sample(targets(due.filter { !$0.checksCertificate }), method: method)
    _ = await (checks, others)
  }
}
