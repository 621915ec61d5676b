import NetOptBench
import NetOptCore
import NetOptLocking
import Testing

/// The executor that starts requests: the executor of the client that performs them.
@Suite struct BlockRunTests {
  /// An executor that counts its jobs and passes them to the global concurrent executor.
  private final class CountingExecutor: TaskExecutor {
    let count = Locked(0)

    func enqueue(_ job: consuming ExecutorJob) {
      count.withLock { $0 += 1 }
      globalConcurrentExecutor.enqueue(UnownedJob(job))
    }
  }

  /// A client with an executor.
  private struct HostedClient: BenchClient {
    let base: FakeBenchClient
    let hosted: CountingExecutor
    var executor: (any TaskExecutor)? { hosted }

    func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse {
      try await base.execute(request)
    }

    func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses {
      try await base.resolve(host, fresh: fresh)
    }

    func startUpChoice(for host: String) async throws(NetOptError) -> StartUpChoice {
      try await base.startUpChoice(for: host)
    }
  }

  /// Returns the number of jobs that the executor gets in a run of 50 rounds of one target.
  private func jobs(_ change: (inout BenchSettings) -> Void) async throws -> Int {
    var settings = try Fixtures.settings([Fixtures.first], dns: false, length: .rounds(cold: 0, warm: 50))
    settings.blocks = [.warm]
    settings.warmup = 0
    change(&settings)
    let base = FakeBenchClient { request, _ in
      await Task.yield()
      return .answer(request)
    }
    let hosted = CountingExecutor()
    let client = HostedClient(base: base, hosted: hosted)
    let clients = Array(repeating: client, count: settings.concurrency)
    let report = await BenchRun(settings, clients: clients, clock: base).report(Fixtures.context)
    #expect(report.targets[0].blocks[.warm]?.requests == 50)
    return hosted.count.withLock { $0 }
  }

  @Test("a closed loop starts requests on its client's executor")
  func closedLoop() async throws {
    // Each request yields once.
    #expect(try await jobs { _ in } >= 50)
    #expect(try await jobs { $0.streams = 3 } >= 50)
    #expect(try await jobs { $0.concurrency = 2 } >= 50)
  }

  @Test("an open loop starts requests on its client's executor")
  func openLoop() async throws {
    // The jobs are one task for each request, and the task that starts the requests.
    #expect(try await jobs { $0.rate = 100 } > 50)
  }
}
