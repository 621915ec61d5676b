import NetOpt
import NetOptCore
import NetOptTestSupport
import Testing

/// What a client takes, and gives back.
@Suite struct ClientLifeTests {
  @Test func nothingIsLeftAfterShutdown() async throws {
    await #expect(processExitsWith: .success) {
      let lab = try await Lab([.works, .behaves(.silent), .refuses])
      defer { lab.stop() }
      // The first use of clocks and tasks opens descriptors of the runtime's own.
      let first = try await lab.client()
      _ = try await first.execute(try lab.request()).body.collect(upTo: 100)
      await first.shutdown()
      let before = ProcessFootprint.now
      for round in 0..<5 {
        let client = try await lab.client()
        for _ in 0..<10 { _ = try await client.execute(try lab.request()).body.collect(upTo: 100) }
        let unread = try await client.execute(try lab.request(.get, "/bytes/10000000"))
        // The last ones are let go of without a shutdown.
        if round < 3 { await client.shutdown() }
        withExtendedLifetime(unread) {}
      }
      try await wait(for: "descriptors and threads to be as before") {
        let now = ProcessFootprint.now
        return now.descriptors == before.descriptors && !now.threadNames.contains("netopt-loop")
      }
    }
  }

  @Test func callsFromTheLoopsExecutorWork() async throws {
    let lab = try await Lab([.works])
    defer { lab.stop() }
    let client = try await lab.client()
    let request = try lab.request()
    let total = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<50 {
        group.addTask(executorPreference: client.loopExecutor) {
          try await client.execute(request).body.collect(upTo: 100).count
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(total == 300)
    // A task on the loop can end the loop, and goes on elsewhere.
    let ended = Task(executorPreference: client.loopExecutor) {
      await client.shutdown()
      return await #expect(throws: NetOptError.self) { _ = try await client.execute(request) }
    }
    #expect(await ended.value?.code == .shutDown)
  }

  private final class Recorder: CallObserver {
    let events = EventRecorder<String>()
    func callWillStart(_ id: UInt64, _ request: HTTPRequest) {
      events.record("\(id) start \(request.method)")
    }
    func callDidReceiveHead(_ id: UInt64, _ response: HTTPResponse) {
      events.record("\(id) head \(response.status)")
    }
    func callDidFinish(_ id: UInt64, _ timings: Timings) {
      events.record("\(id) finish \(timings.total > .zero)")
    }
    func callDidFail(_ id: UInt64, _ error: NetOptError) { events.record("\(id) fail \(error.code)") }
  }

  @Test func observersSeeEachCallToItsEnd() async throws {
    let lab = try await Lab([.works])
    defer { lab.stop() }
    let recorder = Recorder()
    let client = try await lab.client { $0.observers = [recorder] }
    _ = try await client.execute(try lab.request(.get, "/redirect?to=/")).body.collect(upTo: 100)
    do { _ = try await client.execute(try lab.request(.head)) }
    _ = try? await client.execute(try HTTPRequest(.get, "https://nowhere.test/"))
    #expect(
      recorder.events.events == [
        "1 start GET", "1 head 200", "1 finish true", "2 start HEAD", "2 head 200", "2 fail cancelled",
        "3 start GET", "3 fail name-not-found",
      ])
    await client.shutdown()
  }
}
