import NetOpt
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Synchronization

/// A load test of the client. Many tasks send requests to servers that share addresses and fail, and each
/// response is checked (docs/storm.md).
package final class Storm: Sendable {
  /// The maximum number of concurrent requests.
  private static let workers = 28
  /// How long after its deadline a call that has not ended counts as hung.
  private static let patience = Duration.seconds(15)

  private let generator: RequestGenerator
  private let violations: Violations
  /// Whether the process has its own network namespace, so that the storm can change the network.
  private let hasOwnNetwork: Bool
  /// The figures of the storm so far.
  private let report = Locked(StormReport())
  /// The index of the next request.
  private let nextIndex = Atomic<Int>(0)
  /// Whether the tasks should send no more requests.
  private let isOver = Atomic<Bool>(false)
  /// The deadlines of the calls under way, by the index of their plan (`RequestPlan.index`).
  private let underWay = Locked<[Int: MonotonicInstant]>([:])
  private let clock = SystemTimeSource()

  private init(seed: UInt64, hasOwnNetwork: Bool, _ violations: Violations) {
    var generator = RequestGenerator(seed: seed)
    generator.withoutIPv6 = !StormOrigins.hasIPv6
    self.generator = generator
    self.hasOwnNetwork = hasOwnNetwork
    self.violations = violations
    report.withLock {
      $0.seed = seed
      $0.hasNetworkChanges = hasOwnNetwork
    }
  }

  /// Prepares this process: starts tracking libcurl's allocations, and enters a new network namespace where
  /// possible. Must be called before anything else.
  ///
  /// - Returns: whether the process has its own network namespace, so that the storm can change the network.
  package static func prepareProcess() async -> Bool {
    CurlAllocations.install()
    return await OwnNetwork.enter()
  }

  /// Runs a storm in this process, which must do nothing else.
  ///
  /// - Parameters:
  ///   - seconds: the duration of the storm.
  ///   - hasOwnNetwork: the result of `prepareProcess`.
  /// - Returns: the figures of the storm.
  package static func run(
    seed: UInt64, seconds: Int, hasOwnNetwork: Bool, _ violations: Violations
  ) async throws -> StormReport {
    let storm = Storm(seed: seed, hasOwnNetwork: hasOwnNetwork, violations)
    try await storm.warmUp()
    let before = Leftovers.now
    try await storm.run(.seconds(seconds))
    // Some resources end by themselves soon after, such as a thread of the C library; they are no leftovers.
    var additions: [String] = []
    try? await wait(for: "nothing to be left", within: .seconds(10)) {
      additions = Leftovers.now.additions(to: before)
      return additions.isEmpty
    }
    for addition in additions { violations.add(.leftover, addition) }
    return storm.report.withLock { report in
      report.violations = violations.counts
      return report
    }
  }

  /// Sends 40 requests before the storm, without disturbances. This creates everything that a process creates
  /// only once, so that it does not count as left over.
  private func warmUp() async throws {
    _ = try TemporaryDirectory.make("warm-up")
    _ = Content.answer(to: 0).bytes(1000)
    let ledger = Ledger(generator, violations)
    let origins = try await StormOrigins(ledger) { _ in nil }
    let clients = try StormClients(origins)
    for index in -40..<0 {
      let call = try call(generator.plan(index), clients, origins, ledger, Lateness())
      _ = await call.perform()
      await call.lateness.stop()
    }
    await clients.shutdown()
    origins.stop()
  }

  /// Makes the call of a plan, without performing it.
  private func call(
    _ plan: RequestPlan, _ clients: StormClients, _ origins: StormOrigins, _ ledger: Ledger,
    _ lateness: Lateness
  ) -> StormCall {
    StormCall(
      plan: plan, client: clients[plan.client], authority: origins.authority(of: plan.host),
      generator: generator, record: ledger.cache, violations: violations, lateness: lateness)
  }

  /// Starts the servers, the clients, the disturbances and the tasks that send requests, and ends them after
  /// the duration.
  private func run(_ duration: Duration) async throws {
    let ledger = Ledger(generator, violations)
    let seed = generator.seed
    let origins = try await StormOrigins(ledger) { number in SpliceFault.draw(seed: seed, number) }
    defer { origins.stop() }
    let clients = try StormClients(origins)
    let lateness = try Lateness()
    let chaos = ChaosInjector(
      origins, clients, seed: seed, changesNetwork: hasOwnNetwork, violations, lateness)
    let start = clock.now()
    let chaosTask = Task { try await chaos.run() }
    let maintenance = Task { await performMaintenance(origins) }
    let workers = (0..<Self.workers).map { _ in
      Task { await work(clients, origins, ledger, lateness, chaos) }
    }
    try await Task.sleep(for: duration)
    isOver.store(true, ordering: .relaxed)
    await end(workers)
    report.withLock { $0.seconds = Double((clock.now() - start).nanoseconds) / 1e9 }
    chaosTask.cancel()
    if case .failure(let error) = await chaosTask.result, !(error is CancellationError) {
      throw error
    }
    await sweepCaches(clients, origins, ledger, lateness)
    await clients.shutdown()
    maintenance.cancel()
    await maintenance.value
    await lateness.stop()
    origins.stop()
    if clients.left > 0 { violations.add(.leftover, "\(clients.left) clients that were shut down") }
    report.withLock {
      $0.unjudged = lateness.unjudged
      $0.arrivals = ledger.total
      $0.splice = origins.splice.figures
      $0.chaos = chaos.figures
    }
  }

  /// Sends one request after another until the storm is over. The storm runs this in several tasks.
  private func work(
    _ clients: StormClients, _ origins: StormOrigins, _ ledger: Ledger, _ lateness: Lateness,
    _ chaos: ChaosInjector
  ) async {
    while !isOver.load(ordering: .relaxed) {
      let plan = generator.plan(nextIndex.wrappingAdd(1, ordering: .relaxed).oldValue)
      try? await Task.sleep(for: .milliseconds(plan.rest))
      let calm = chaos.calmNumber
      let call = call(plan, clients, origins, ledger, lateness)
      let deadline = clock.now() + .milliseconds(plan.timeout)
      underWay.withLock { $0[plan.index] = deadline }
      let outcome = await call.perform()
      underWay.withLock { $0[plan.index] = nil }
      let isCalm = calm != nil && chaos.calmNumber == calm
      judge(outcome, of: plan, isCalm: isCalm)
      report.withLock { $0.add(plan, outcome, isCalm: isCalm) }
    }
  }

  /// Requests everything that the caches may hold, from the caches only. So entries that no later request
  /// uses are checked too.
  private func sweepCaches(
    _ clients: StormClients, _ origins: StormOrigins, _ ledger: Ledger, _ lateness: Lateness
  ) async {
    var entries = 0
    for host in StormHost.all {
      for number in 0..<RequestGenerator.cachedURLs {
        var plan = RequestPlan(index: -1, host: host)
        plan.answer = RequestGenerator.cachedAnswer(number)
        plan.onlyIfCached = true
        for flavour in 0..<(plan.answer.cached?.varies == true ? 3 : 1) {
          plan.flavour = "\(flavour)"
          for client in RequestGenerator.firstWithCache..<RequestGenerator.clients {
            plan.client = client
            let outcome = await call(plan, clients, origins, ledger, lateness).perform()
            if case .answered(_, isFromCache: true) = outcome { entries += 1 }
          }
        }
      }
    }
    report.withLock { $0.cacheEntries = entries }
  }

  /// Adds a violation when a call failed although nothing disturbed it, or with an error that no disturbance
  /// explains.
  ///
  /// - Parameter isCalm: whether the whole call was within one calm period.
  private func judge(_ outcome: StormCall.Outcome, of plan: RequestPlan, isCalm: Bool) {
    guard case .failed(let error) = outcome else { return }
    let text = "\(error.code) in \(error.phase): \(error); \(plan)"
    if isCalm, !plan.mayFail { violations.add(.unexpectedError, text) }
    switch error.code {
    case .cancelled where plan.cancellation == nil && plan.reading != .notAtAll,
      .invalidRequest, .invalidURL, .invalidConfiguration, .nameNotFound, .certificateName,
      .certificateUntrusted, .certificateExpired, .protocolViolation, .libraryFailed, .bodyTooLarge,
      .tooManyRedirects:
      violations.add(.oddError, text)
    case .unsupported where plan.version != .http2: violations.add(.oddError, text)
    default: break
    }
  }

  /// Waits until the tasks that send requests have ended, but not for a task whose call hangs. Reports the
  /// calls that have not ended.
  private func end(_ workers: [Task<Void, Never>]) async {
    let done = Latch()
    Task {
      for worker in workers { await worker.value }
      done.open()
    }
    let limit = Task {
      try? await Task.sleep(for: .milliseconds(RequestPlan.usualTimeout) + Self.patience)
      done.open()
    }
    try? await done.wait()
    limit.cancel()
    reportHangs(after: .zero)
  }

  /// Reads the logs and looks for hung calls, five times a second. Notes the memory of the process twice a
  /// minute.
  private func performMaintenance(_ origins: StormOrigins) async {
    var rounds = 0
    while !Task.isCancelled {
      origins.readLogs()
      reportHangs(after: Self.patience)
      if rounds.isMultiple(of: 150) {
        let memory = ProcessFootprint.now.memoryBytes
        report.withLock { $0.memory.append(memory) }
      }
      rounds += 1
      try? await Task.sleep(for: .milliseconds(200))
    }
  }

  /// Reports each call whose deadline passed more than `patience` ago, once.
  private func reportHangs(after patience: Duration) {
    let now = clock.now()
    let hanging = underWay.withLock { underWay in
      let hanging = underWay.filter { $0.value + patience < now }.keys
      for index in hanging { underWay[index] = nil }
      return hanging.sorted()
    }
    for index in hanging { violations.add(.hang, "\(generator.plan(index))") }
  }
}
