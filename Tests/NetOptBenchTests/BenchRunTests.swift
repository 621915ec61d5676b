import NetOptBench
import NetOptCore
import NetOptLocking
import Testing

@Suite struct BenchRunTests {
  @Test("a run sends the cold and warm rounds to all targets in the orders of the seed")
  func roundOrder() async throws {
    let settings = try Fixtures.settings(length: .rounds(cold: 3, warm: 4))
    let client = FakeBenchClient { request, _ in .answer(request) }
    let report = await BenchRun(settings, clients: [client], clock: client).report(Fixtures.context)
    let names = settings.targets.map(\.id)
    /// The names of the targets in the order of the requests.
    func orders(_ block: Block, _ rounds: Int) -> [String] {
      BenchPlan(seed: settings.seed, block: block, targets: 3).prefix(rounds).flatMap { $0.map { names[$0] } }
    }
    // The run begins with a first request to each of the three targets.
    let sent = client.requests.dropFirst(3)
    #expect(sent.prefix(9).map(\.target) == orders(.cold, 3))
    #expect(sent.prefix(9).allSatisfy { $0.options.connection == .fresh })
    #expect(sent.dropFirst(9).map(\.target) == orders(.warm, settings.warmup + 4))
    #expect(sent.dropFirst(9).allSatisfy { $0.options.connection == .pooled })
    #expect(report.rounds == [.cold: 3, .warm: 4])
    #expect(report.stopReason == .completed && !report.isPartial)
    #expect(report.targets.allSatisfy { $0.counts == [.ok: 7] })
    #expect(report.targets.allSatisfy { $0.blocks[.warm]?.requests == 4 })
  }

  @Test("a run performs only the requested blocks")
  func requestedBlocks() async throws {
    var settings = try Fixtures.settings()
    settings.blocks = [.cold]
    let report = await Fixtures.report(settings) { request, _ in .answer(request) }
    #expect(report.rounds == [.cold: 6])
    #expect(report.targets.allSatisfy { $0.blocks[.warm] == nil })
    #expect(report.rankingBlock == .cold)
  }

  @Test("at most 64 first requests run at once, and later requests run one at a time")
  func firstRequests() async throws {
    let addresses = (1...100).map { IPAddress(v4: 0x0a00_0000 + $0) }
    // The gate holds the first 64 requests until they are all in progress.
    let gate = Gate(opensAt: Preflight.concurrency)
    let settings = try Fixtures.settings(addresses, dns: false, length: .rounds(cold: 1, warm: 1))
    let client = FakeBenchClient { request, _ in
      await gate.pass()
      return .answer(request)
    }
    _ = await BenchRun(settings, clients: [client], clock: client).report(Fixtures.context)
    #expect(client.state.withLock(\.mostInProgress) == Preflight.concurrency)

    let calm = FakeBenchClient { request, _ in .answer(request) }
    let one = try Fixtures.settings([Fixtures.first], dns: false)
    _ = await BenchRun(one, clients: [calm], clock: calm).report(Fixtures.context)
    #expect(calm.state.withLock(\.mostInProgress) == 1)
  }

  @Test("a run excludes an unusable target and measures the other targets")
  func unusableTarget() async throws {
    let report = try await Fixtures.usual()
    let excluded = report.targets.filter { $0.exclusion != nil }
    #expect(excluded.map(\.target.address) == [Fixtures.impostor])
    #expect(excluded[0].exclusion?.code == "certificate-name")
    #expect(excluded[0].counts.isEmpty && excluded[0].blocks.isEmpty)
    #expect(report.targets.filter { $0.exclusion == nil }.count == 4)
    #expect(report.hasFailures && report.hasUsableAnswers)
  }

  @Test("a run whose targets all refuse the connection gives a report")
  func noUsableTarget() async throws {
    let report = try await Fixtures.dead()
    #expect(report.stopReason == .noTarget && !report.isPartial)
    #expect(report.targets.map(\.exclusion?.code) == ["refused", "refused", "refused"])
    #expect(!report.hasUsableAnswers)
  }

  @Test("a run counts failures by kind and goes on after a failure")
  func failureKinds() async throws {
    let settings = try Fixtures.settings([], length: .rounds(cold: 0, warm: 7))
    let errors: [NetOptError] = [
      .leg(.refused), .leg(.tlsTimeout), .leg(.tls), .leg(.resolve), NetOptError(.timeout, phase: .send, ""),
    ]
    let report = await Fixtures.report(settings) { request, number throws(NetOptError) in
      // The first request and the warm-up requests succeed.
      switch number - 1 - settings.warmup {
      case ..<0: return .answer(request)
      case 5: return .answer(request, status: 500)
      case 6: return .answer(request)
      case let index: throw errors[index]
      }
    }
    #expect(
      report.targets[0].counts == [.ok: 1, .httpError: 1, .timeout: 2, .connect: 1, .tls: 1, .dns: 1])
    #expect(report.targets[0].blocks[.warm]?.response.timeouts == 2)
    #expect(report.targets[0].failures == 6)
  }

  @Test("the blocks share the duration of a run equally, and the warm-up does not count")
  func sharedDuration() async throws {
    let settings = try Fixtures.settings([Fixtures.first], dns: false, length: .duration(.milliseconds(100)))
    let report = await Fixtures.report(settings) { request, _ in
      .answer(request, .cold(tcp: 0, tls: 0, wait: 10, transfer: 0))
    }
    // Each block gets 50 ms for rounds of 10 ms.
    #expect(report.rounds == [.cold: 5, .warm: 5])
    #expect(report.stopReason == .completed)
    // The first request, the cold block, the two warm-up requests, and the warm block.
    #expect(report.elapsed == .milliseconds(10 + 50 + 20 + 50))
  }

  @Test("a stopped run drops the unfinished round and is partial")
  func unfinishedRound() async throws {
    let report = try await Fixtures.interrupted()
    #expect(report.stopReason == .interrupted && report.isPartial)
    #expect(report.rounds == [.cold: 6, .warm: 2])
    #expect(report.targets.allSatisfy { $0.blocks[.warm]?.requests == 2 && $0.blocks[.cold]?.requests == 6 })
  }

  @Test("stopping a run ends a request that hangs")
  func hangingRequest() async throws {
    // `hanging` yields when the request that hangs has begun: the third cold request.
    let (hanging, report) = AsyncStream<Void>.makeStream()
    let settings = try Fixtures.settings([Fixtures.first], dns: false)
    let client = FakeBenchClient { request, number throws(NetOptError) in
      guard number == 3 else { return .answer(request) }
      report.yield()
      await hangUntilCancelled()
      throw NetOptError(.cancelled, phase: .receive, "stopped")
    }
    let run = Task {
      await BenchRun(settings, clients: [client], clock: client).report(Fixtures.context)
    }
    for await _ in hanging { break }
    run.cancel()
    let result = await run.value
    #expect(result.stopReason == .interrupted)
    #expect(result.rounds == [.cold: 2])
  }

  @Test("stopping a run during the first requests excludes no target")
  func earlyStop() async throws {
    let settings = try Fixtures.settings()
    let client = FakeBenchClient { _, _ throws(NetOptError) in
      throw NetOptError(.cancelled, phase: .connect, "stopped")
    }
    let run = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await BenchRun(settings, clients: [client], clock: client).report(Fixtures.context)
    }
    let report = await run.value
    #expect(report.stopReason == .interrupted)
    #expect(report.targets.allSatisfy { $0.exclusion == nil })
  }

  @Test("a run ends with a warning before a round that exceeds the sample limit")
  func limitedSamples() async throws {
    let settings = try Fixtures.settings([Fixtures.first], length: .rounds(cold: 6, warm: 6))
    let client = FakeBenchClient { request, _ in .answer(request) }
    // A round has two samples. After 6 cold and 2 warm rounds, the next round would exceed the limit of 17.
    let report = await BenchRun(settings, clients: [client], clock: client, sampleLimit: 17)
      .report(Fixtures.context)
    #expect(report.rounds == [.cold: 6, .warm: 2])
    #expect(report.stopReason == .sampleLimit && report.isPartial)
    #expect(report.warnings.map(\.code) == ["sample-limit"])
  }

  @Test("a run warns about cold samples on open connections and warm samples on new ones")
  func wrongConnections() async throws {
    let settings = try Fixtures.settings([Fixtures.first], dns: false)
    // The run sends 1 first request, 6 cold requests, 2 warm-up requests and 6 warm requests.
    let report = await Fixtures.report(settings) { request, number in
      .answer(request, reused: number == 3 ? true : number == 10 ? false : nil)
    }
    #expect(
      report.warnings == [
        BenchWarning("reused", "1 of 6 cold samples of 203.0.113.7 used an open connection"),
        BenchWarning("not-reused", "1 of 6 warm samples of 203.0.113.7 opened a new connection"),
      ])
    #expect(report.targets[0].blocks[.warm]?.response.count == 6)
  }

  @Test("an open loop sends all requests at the set rate and records their lags")
  func openLoop() async throws {
    var settings = try Fixtures.settings([Fixtures.first], length: .rounds(cold: 0, warm: 20))
    settings.blocks = [.warm]
    settings.rate = 100
    // One request takes 1 s. All other requests take 2 ms.
    let report = await Fixtures.report(settings) { request, number in
      .answer(request, .warm(number == 10 && request.target == "dns" ? 1_000 : 2, transfer: 0))
    }
    #expect(report.rounds == [.warm: 20])
    let requests = report.targets.map { $0.blocks[.warm]?.requests }
    #expect(requests == [20, 20])
    #expect(report.lags.count == 40)
    // 40 requests, 10 ms apart.
    #expect(report.elapsed >= .milliseconds(390))
    for target in report.targets {
      let found = try #require(target.blocks[.warm])
      #expect(found.response.count == 20)
      #expect((found.response.minimum ?? 0) >= (found.service.minimum ?? 0))
    }
  }

  /// One wait for a scheduled moment ends 1 s late. Requests that are due in that second start up to 1 s
  /// late.
  @Test("an open loop counts the delay of a late start as response time, and warns")
  func lateStart() async throws {
    var settings = try Fixtures.settings([Fixtures.first], dns: false, length: .rounds(cold: 0, warm: 40))
    settings.blocks = [.warm]
    settings.rate = 50
    let clock = StalledClock()
    let client = FakeBenchClient { request, _ in .answer(request, .warm(2, transfer: 0)) }
    let report = await BenchRun(settings, clients: [client], clock: clock).report(Fixtures.context)
    let found = try #require(report.targets[0].blocks[.warm])
    // All 40 requests are due within 0.8 s. So those after the delayed one are all due before it starts.
    #expect((found.response.maximum ?? 0) > 900_000)
    #expect((found.service.maximum ?? 0) < 10_000)
    #expect(report.lateStarts > 30)
    #expect(report.warnings.map(\.code).contains("client-late"))
  }

  @Test("a warm block uses all connections and streams at once")
  func concurrentStreams() async throws {
    var settings = try Fixtures.settings([Fixtures.first], dns: false, length: .rounds(cold: 0, warm: 60))
    settings.blocks = [.warm]
    settings.warmup = 0
    settings.concurrency = 2
    settings.streams = 3
    // After the first requests, three requests run at once on each of the two clients.
    let gate = Gate(opensAt: 6)
    let clients = (0..<2).map { _ in
      FakeBenchClient { request, number in
        if number > 0 { await gate.pass() }
        return .answer(request)
      }
    }
    let report = await BenchRun(settings, clients: clients, clock: clients[0]).report(Fixtures.context)
    #expect(report.rounds == [.warm: 60])
    #expect(report.targets[0].blocks[.warm]?.requests == 60)
    #expect(clients.allSatisfy { $0.state.withLock(\.mostInProgress) == 3 })
  }

  @Test("a run warns when the DNS answer changes during the run")
  func changedAnswer() async throws {
    let settings = try Fixtures.settings([], length: .rounds(cold: 2, warm: 2))
    let client = ChangingResolver()
    let report = await BenchRun(settings, clients: [client], clock: client.inner).report(Fixtures.context)
    #expect(report.warnings.map(\.code) == ["dns-changed"])
  }

  @Test("the report compares the start-up probe's choice and ranking with the measured ones")
  func probeRanking() async throws {
    let settings = try Fixtures.settings([Fixtures.first, Fixtures.second, Fixtures.third], dns: false)
    let client = FakeBenchClient(
      choice: .success(Fixtures.second), ranking: [Fixtures.second, Fixtures.first, Fixtures.third]
    ) { request, _ in
      let times: [String: Double] = [Fixtures.first.description: 10, Fixtures.second.description: 20]
      let wait = times[request.target] ?? 30
      return .answer(request, .warm(wait))
    }
    let report = await BenchRun(settings, clients: [client], clock: client).report(Fixtures.context)
    let picker = try #require(report.picker)
    #expect(picker.chosen == Fixtures.second && picker.best == Fixtures.first && picker.regret == 10_000)
    // Two of the three pairs of addresses are in the same order in both rankings.
    #expect(abs((picker.kendallTau ?? 0) - 1 / 3) < 1e-9)
    #expect(!picker.isTie)
  }

  @Test("a run warns when the start-up probe fails")
  func failedProbe() async throws {
    let settings = try Fixtures.settings([Fixtures.first])
    let client = FakeBenchClient(
      choice: .failure(NetOptError(.connectFailed, phase: .connect, "nothing answers")),
      answers: .failure(NetOptError(.nameNotFound, phase: .resolve, "unknown"))
    ) { request, _ in .answer(request) }
    let report = await BenchRun(settings, clients: [client], clock: client).report(Fixtures.context)
    #expect(report.warnings.map(\.code) == ["probe-failed"])
    #expect(report.choice == nil && report.dnsAnswers == nil)
  }

  @Test("a run reports its progress after each round")
  func progressStates() async throws {
    let settings = try Fixtures.settings([Fixtures.first], dns: false, length: .rounds(cold: 2, warm: 1))
    let (states, seen) = AsyncStream<BenchProgress>.makeStream()
    let client = FakeBenchClient { request, _ in .answer(request, .warm(10, transfer: 0)) }
    _ = await BenchRun(settings, clients: [client], clock: client, progress: { seen.yield($0) })
      .report(Fixtures.context)
    seen.finish()
    var all: [BenchProgress] = []
    for await state in states { all.append(state) }
    // 10 ms, as the largest value of the histogram's bucket.
    let median = [BenchProgress.Median(id: "203.0.113.7", microseconds: 10_007)]
    #expect(
      all == [
        BenchProgress(.cold, done: 1, planned: 2, remaining: .milliseconds(10), medians: median),
        BenchProgress(.cold, done: 2, planned: 2, remaining: .zero, medians: median),
        BenchProgress(.warm, done: 1, planned: 1, remaining: .zero, medians: median),
      ])
  }

  @Test("a run repeats a failed first request once, and excludes a target that fails twice")
  func repeatedFirstRequest() async throws {
    let settings = try Fixtures.settings(
      [Fixtures.first, Fixtures.second], length: .rounds(cold: 0, warm: 6))
    let report = await Fixtures.report(settings) { request, number throws(NetOptError) in
      if request.target == Fixtures.first.description, number == 0 { throw .leg(.connectTimeout) }
      if request.target == Fixtures.second.description, number < 2 { throw .leg(.refused) }
      return .answer(request)
    }
    #expect(report.targets.map(\.exclusion?.code) == [nil, "refused", nil])
    #expect(report.targets[0].blocks[.warm]?.requests == 6)
  }

  @Test("a run of the shortest duration has one round of each block")
  func shortestDuration() async throws {
    let settings = try Fixtures.settings(length: .duration(.nanoseconds(2)))
    let client = FakeBenchClient { request, _ in .answer(request) }
    let clock = ImpatientClock()
    let report = await BenchRun(settings, clients: [client], clock: clock).report(Fixtures.context)
    #expect(report.rounds == [.cold: 1, .warm: 1])
  }
}

/// Waits until the task is cancelled.
private func hangUntilCancelled() async {
  let (never, hold) = AsyncStream<Void>.makeStream()
  // The iteration over a stream ends when the task is cancelled.
  for await _ in never {}
  hold.finish()
}

/// A barrier that holds all callers until `threshold` callers wait, and from then on lets every caller pass.
private actor Gate {
  private let threshold: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []
  private var isOpen = false

  init(opensAt threshold: Int) { self.threshold = threshold }

  func pass() async {
    if isOpen { return }
    await withCheckedContinuation {
      waiting.append($0); if waiting.count == threshold { open() }
    }
  }

  private func open() {
    isOpen = true
    for continuation in waiting { continuation.resume() }
    waiting = []
  }
}

/// A clock whose fifth wait ends 1 s late. Time passes only in waits.
private final class StalledClock: BenchClock {
  /// The present moment in nanoseconds, and the number of waits so far.
  private let state = Locked((now: Int64(0), waits: 0))

  func now() -> MonotonicInstant { MonotonicInstant(nanoseconds: state.withLock(\.now)) }

  func wait(until moment: MonotonicInstant) async -> Bool {
    state.withLock { state in
      state.waits += 1
      state.now = max(state.now, moment.nanoseconds) + (state.waits == 5 ? 1_000_000_000 : 0)
    }
    return true
  }
}

/// A client whose DNS answer differs at each look-up. The two tests in this type do not use it.
private final class ChangingResolver: BenchClient {
  /// The client that does everything but the look-ups.
  let inner = FakeBenchClient { request, _ in .answer(request) }
  /// The number of look-ups so far.
  private let asked = Locked(UInt32(0))

  func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse {
    try await inner.execute(request)
  }

  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses {
    let number = asked.withLock { asked in
      asked += 1
      return asked
    }
    return ResolvedAddresses([IPAddress(v4: 0x7f00_0000 + number)], timeToLive: .seconds(60))
  }

  func startUpChoice(for host: String) async throws(NetOptError) -> StartUpChoice {
    try await inner.startUpChoice(for: host)
  }
}

/// A clock that advances by 1 s at each reading.
private final class ImpatientClock: BenchClock {
  /// What the clock last showed.
  private let moment = Locked(MonotonicInstant(nanoseconds: 0))

  func now() -> MonotonicInstant {
    moment.withLock { moment in
      moment = moment + .seconds(1)
      return moment
    }
  }

  func wait(until moment: MonotonicInstant) async -> Bool { !Task.isCancelled }
}
