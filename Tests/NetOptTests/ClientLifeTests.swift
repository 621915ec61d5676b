import FoundationEssentials
import Glibc
import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// The resources of a client (threads, descriptors, files), and its life from the first request to the
/// shutdown.
@Suite struct ClientLifeTests {
  @Test("a client has no list by default, and probes of the compiled-in list only the hosts of its requests")
  func unaskedTraffic() async throws {
    #expect(try NetOptClient(ClientConfiguration(), transport: StubTransport()).list == nil)
    var configuration = ClientConfiguration()
    configuration.list = .builtIn
    let endpoints = try #require(EndpointList.builtIn.hosts["dns.google"]).endpoints.map(\.address)
    let transport = StubTransport(Dictionary(uniqueKeysWithValues: endpoints.map { ($0, .respond()) }))
    let client = try NetOptClient(configuration, transport: transport)
    _ = try await client.execute(NetOptRequest(.get, "https://dns.google/"))
    await client.shutdown()
    #expect(!transport.opened.isEmpty && Set(transport.opened).isSubset(of: endpoints))
  }

  @Test("a client leaves no descriptor and no loop thread behind, with and without a shutdown")
  func leftResources() async throws {
    await #expect(processExitsWith: .success) {
      let lab = try await Lab([.works, .behaves(.silent), .refuses])
      defer { lab.stop() }
      // The first use of clocks and tasks opens descriptors of the runtime.
      let first = try await lab.client()
      _ = try await first.execute(try lab.request()).body.collect(upTo: 100)
      await first.shutdown()
      // The silent server runs in this process. It closes its side of a connection a little after the client.
      try await wait(for: "the servers to see the end") { lab.openConnections == 0 }
      let before = ProcessFootprint.now
      for round in 0..<5 {
        let client = try await lab.client()
        for _ in 0..<10 { _ = try await client.execute(try lab.request()).body.collect(upTo: 100) }
        let unread = try await client.execute(try lab.request(.get, "/bytes/10000000"))
        // The last two clients are released without a shutdown.
        if round < 3 { await client.shutdown() }
        withExtendedLifetime(unread) {}
      }
      try await wait(for: "descriptors and threads to be as before") {
        let now = ProcessFootprint.now
        return now.descriptors == before.descriptors && !now.threadNames.contains("netopt-loop")
      }
    }
  }

  @Test("each of several concurrent shutdowns returns after the loop threads have ended")
  func concurrentShutdowns() async throws {
    await #expect(processExitsWith: .success) {
      let lab = try await Lab([.works])
      defer { lab.stop() }
      let client = try await lab.client()
      _ = try await client.execute(try lab.request()).body.collect(upTo: 100)
      await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<8 {
          group.addTask {
            await client.shutdown()
            return ProcessFootprint.now.threadNames.contains("netopt-loop")
          }
        }
        for await isThere in group { #expect(!isThere) }
      }
    }
  }

  @Test("a client refuses a caFile that is missing, empty, a directory or a pipe")
  func unreadableAuthorities() throws {
    let directory = try TemporaryDirectory.make("authorities")
    let file = "\(directory)/empty.pem"
    try Data("no certificate\n".utf8).write(to: URL(filePath: file))
    // If the client accepted the pipe, libcurl would wait on the event loop for its other end.
    let pipe = "\(directory)/pipe"
    try #require(mkfifo(pipe, 0o600) == 0)
    for path in ["\(directory)/missing.pem", file, directory, pipe] {
      var configuration = ClientConfiguration()
      configuration.tls.caFile = path
      let error = #expect(throws: NetOptError.self) { _ = try NetOptClient(configuration) }
      #expect(error?.code == .invalidConfiguration)
      #expect(error?.message.contains(path) == true)
    }
  }

  @Test("a client behind a proxy does not connect to listed endpoints")
  func listBehindProxy() async throws {
    let addresses = IPAddress.freshLoopback(2)
    let port = try FreePort.find(on: addresses)
    let listed = try LoopbackServer(.silent, on: addresses[0], port: port)
    defer { listed.stop() }
    let proxy = try LoopbackServer(.closing, on: addresses[1], port: port)
    defer { proxy.stop() }
    var configuration = ClientConfiguration()
    configuration.list = .list(
      EndpointList(hosts: ["api.test": HostEntry(port: port, endpoints: [ListedEndpoint(addresses[0])])]))
    configuration.proxy = .url("http://\(addresses[1]):\(port)")
    configuration.probing.firstRequestWait = .seconds(60)
    configuration.rankingHistory = .none
    let client = try NetOptClient(configuration)
    await #expect(throws: NetOptError.self) {
      _ = try await client.execute(try NetOptRequest(.get, "https://api.test:\(port)/"))
    }
    #expect(proxy.connections > 0)
    #expect(listed.connections == 0)
    await client.shutdown()
  }

  @Test("cancelling one first request does not end another's wait for the start-up probe")
  func cancelledFirstRequest() async throws {
    let lab = try await Lab([.behaves(.silent)])
    defer { lab.stop() }
    let budget = Duration.milliseconds(400)
    let client = try await lab.client {
      $0.probing.budget = budget
      $0.probing.firstRequestWait = .seconds(60)
    }
    let request = try lab.request()
    let cancelled = Task { try await client.execute(request) }
    let other = Task { try await client.execute(request) }
    cancelled.cancel()
    _ = await cancelled.result
    let response = try await other.value
    // The second call went on when the probe had failed after its budget of 400 ms, and not when the first
    // call was cancelled.
    #expect(try #require(response.route.legs.first).started >= budget * 0.5)
    await client.shutdown()
  }

  @Test("calls and a shutdown work from tasks on the loop's executor")
  func loopExecutor() async throws {
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
    // 50 bodies of 6 bytes.
    #expect(total == 300)
    // A task on the event loop can end the loop, and continues elsewhere.
    let ended = Task(executorPreference: client.loopExecutor) {
      await client.shutdown()
      return await #expect(throws: NetOptError.self) { _ = try await client.execute(request) }
    }
    #expect(await ended.value?.code == .shutDown)
  }

  /// Records each event of a call as text: the number of the call, the event, and a property.
  private final class Recorder: CallObserver {
    let events = EventRecorder<String>()
    func callWillStart(_ id: UInt64, _ request: NetOptRequest) {
      events.record("\(id) start \(request.method)")
    }
    func callDidReceiveHead(_ id: UInt64, _ response: NetOptResponse) {
      events.record("\(id) head \(response.status)")
    }
    func callDidFinish(_ id: UInt64, _ timings: Timings) {
      events.record("\(id) finish \(timings.total > .zero)")
    }
    func callDidFail(_ id: UInt64, _ error: NetOptError) { events.record("\(id) fail \(error.code)") }
  }

  @Test("an observer sees the start, the head and the end of each call")
  func observedCalls() async throws {
    let lab = try await Lab([.works])
    defer { lab.stop() }
    let recorder = Recorder()
    let client = try await lab.client { $0.observers = [recorder] }
    _ = try await client.execute(try lab.request(.get, "/redirect?to=/")).body.collect(upTo: 100)
    do { _ = try await client.execute(try lab.request(.head)) }
    _ = try? await client.execute(try NetOptRequest(.get, "https://nowhere.test/"))
    #expect(
      recorder.events.events == [
        "1 start GET", "1 head 200", "1 finish true", "2 start HEAD", "2 head 200", "2 finish true",
        "3 start GET", "3 fail name-not-found",
      ])
    await client.shutdown()
  }

  @Test(
    "a response that has arrived is finished when the program does not read it, and any other has failed",
    arguments: [
      (NetOptRequest.Method.head, 200, "", "finish"), (.get, 204, "", "finish"), (.get, 304, "", "finish"),
      (.get, 200, "", "finish"), (.get, 200, "content", "finish"), (.head, 404, "", "finish"),
    ], [true, false])
  func unreadBody(
    _ row: (method: NetOptRequest.Method, status: Int, body: String, end: String), _ isStream: Bool
  )
    async throws
  {
    let recorder = Recorder()
    let lab = try CacheLab(configure: { $0.observers = [recorder] }) { request, _ throws(NetOptError) in
      let body =
        isStream
        ? ResponseBody(GatedBody(row.body.isEmpty ? [] : [row.body])) : ResponseBody(Array(row.body.utf8))
      return CacheLab.response(request, row.status, [:], body)
    }
    do { _ = try await lab.begin(row.method) }
    let end = recorder.events.events.last?.split(separator: " ")[1]
    // Nothing says that a streamed 200 has no content.
    let isUnknown = isStream && row.method == .get && row.status == 200
    #expect(end == (isUnknown ? "fail" : Substring(row.end)))
    #expect(recorder.events.events.count == 3)
    await lab.client.shutdown()
  }
}
