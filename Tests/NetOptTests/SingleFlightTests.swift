import NetOptCaching
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import Testing

@testable import NetOpt

/// Tests that concurrent calls for the same resource share one fetch (single flight, `InFlightFetches`).
@Suite struct SingleFlightTests {
  /// The fields of a response that the cache may store.
  private static let fields: HeaderFields = ["Cache-Control": "max-age=60"]

  /// Starts `count` calls with the same request. Waits until all of them have joined a fetch. If no fetch is
  /// running, one of the calls makes it, and the others wait for it.
  private func start(
    _ count: Int, on lab: CacheLab, _ change: @escaping @Sendable (inout NetOptRequest) -> Void = { _ in }
  ) async throws -> [Task<String, any Error>] {
    let before = try lab.inFlightFetches.waiting
    // How many of the calls make a fetch and do not wait.
    let leads = try lab.inFlightFetches.count == 0 ? 1 : 0
    let tasks = (0..<count).map { _ in Task { try await lab.ask(.get, "/thing", [:], change).text } }
    try await wait(for: "the calls to join") { try lab.inFlightFetches.waiting == before + count - leads }
    return tasks
  }

  @Test("a thousand concurrent calls share one fetch")
  func thousandCalls() async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      try? await gate.wait()
      return CacheLab.response(request, 200, Self.fields, "answer \(number)")
    }
    let calls = try await start(1000, on: lab)
    gate.open()
    for call in calls { #expect(try await call.value == "answer 1") }
    #expect(lab.sent == 1)
    #expect(try lab.inFlightFetches.count == 0)
    await lab.client.shutdown()
  }

  @Test("a thousand concurrent calls share one fetch on the stub transport")
  func thousandCallsOnStub() async throws {
    let clock = ManualTimeSource()
    let address = IPAddress(v4: 0x0a00_0001)
    let answer = StubOutcome.respond(200, fields: Self.fields, body: Array("hello".utf8))
    let transport = StubTransport([address: answer.taking(answer: .seconds(1))], timeSource: clock)
    var configuration = ClientConfiguration()
    configuration.probing.atStart = false
    configuration.list = .list(
      EndpointList(hosts: ["api.test": HostEntry(port: 443, endpoints: [ListedEndpoint(address, weight: 1)])])
    )
    configuration.proxy = .none
    configuration.rankingHistory = .none
    configuration.cache = ClientConfiguration.Cache()
    let client = try NetOptClient(
      configuration, transport: transport, resolver: StubResolver(), timeSource: clock)
    let cache = try #require(client.responseCache)
    let calls = try (0..<1000).map { _ in
      let request = try NetOptRequest(.get, "https://api.test/thing")
      return Task {
        let response = try await client.execute(request)
        return (response, try await response.body.collect(upTo: 100))
      }
    }
    try await wait(for: "the calls to join") {
      cache.inFlightFetches.waiting == 999 && transport.received.count == 1
    }
    clock.advance(by: .seconds(2))
    var waits = 0
    for call in calls {
      let (response, body) = try await call.value
      #expect(body == Array("hello".utf8))
      // A call that waited for the fetch of another call says how long.
      if response.cacheStatus.isCollapsed, response.timings.wait == .seconds(2) { waits += 1 }
    }
    #expect(waits == 999)
    #expect(transport.received.count == 1)
    await client.shutdown()
  }

  @Test("a thousand concurrent calls make one request to a loopback server")
  func thousandCallsOnLoopback() async throws {
    let server = try LoopbackServer(
      .raw { exchange in
        try exchange.respond(200, ["Cache-Control": "max-age=60"], text: "hello")
      })
    defer { server.stop() }
    var configuration = ClientConfiguration()
    configuration.list = .none
    configuration.proxy = .none
    configuration.rankingHistory = .none
    configuration.cache = ClientConfiguration.Cache()
    let client = try NetOptClient(configuration)
    let url = "http://\(server.endpoint)/thing"
    try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<1000 {
        group.addTask { try await client.execute(try NetOptRequest(.get, url)).body.collect(upTo: 100) }
      }
      for try await body in group { #expect(body == Array("hello".utf8)) }
    }
    #expect(server.requests.count == 1)
    await client.shutdown()
  }

  /// The fields of the 304 also decide whether the waiting call may get the stored response.
  ///
  /// - Parameter news: the fields of the 304.
  @Test(
    "a revalidated response is shared with a waiting call only if the 304's fields allow it",
    arguments: [
      ["Vary": "*"], ["Vary": "X-Thing"], ["Cache-Control": "no-store, max-age=600"],
      ["Cache-Control": "max-age=600"],
    ] as [HeaderFields])
  func sharedRevalidation(_ news: HeaderFields) async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      let user = request.headers["X-Thing"] ?? "nobody"
      guard number > 1 else {
        return CacheLab.response(request, 200, ["ETag": "\"a\"", "Cache-Control": "max-age=0"], user)
      }
      guard request.headers["If-None-Match"] != nil, number == 2 else {
        return CacheLab.response(request, 200, ["ETag": "\"\(number)\""], user)
      }
      try? await gate.wait()
      return CacheLab.response(request, 304, news)
    }
    #expect(try await lab.ask(.get, "/thing", ["X-Thing": "a"]).text == "a")
    let first = Task { try await lab.ask(.get, "/thing", ["X-Thing": "a"]).text }
    try await wait(for: "the question") { lab.sent == 2 }
    let second = Task { try await lab.ask(.get, "/thing", ["X-Thing": "b"]).text }
    try await wait(for: "the other call") { try lab.inFlightFetches.waiting == 1 }
    gate.open()
    #expect(try await first.value == "a")
    let isShared = news["Cache-Control"] == "max-age=600"
    #expect(try await second.value == (isShared ? "a" : "b"))
    #expect(lab.sent == (isShared ? 2 : 3))
    await lab.client.shutdown()
  }

  @Test("cancelling the call that fetches makes one waiting call fetch for all others")
  func cancelledLeader() async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      do { try await gate.wait() } catch {
        throw NetOptError(.cancelled, phase: .receive, "the call was cancelled")
      }
      return CacheLab.response(request, 200, Self.fields, "answer \(number)")
    }
    let first = try await start(1, on: lab)[0]
    try await wait(for: "the first fetch") { lab.sent == 1 }
    let others = try await start(100, on: lab)
    first.cancel()
    await #expect(throws: NetOptError.self) { try await first.value }
    try await wait(for: "another fetch") { lab.sent == 2 }
    // The cancellation of a waiting call does not affect the others either.
    others[50].cancel()
    gate.open()
    for (index, call) in others.enumerated() where index != 50 { #expect(try await call.value == "answer 2") }
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("a connection failure fails all waiting calls after one attempt")
  func sharedFailure() async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      try? await gate.wait()
      throw NetOptError(.connectFailed, phase: .connect, "nobody is there")
    }
    let calls = try await start(1000, on: lab)
    gate.open()
    for call in calls {
      let error = await #expect(throws: NetOptError.self) { try await call.value }
      #expect(error?.code == .connectFailed)
    }
    #expect(lab.sent == 1)
    await lab.client.shutdown()
  }

  /// Failed calls do not retry by themselves, and the calls after them share one fetch.
  @Test("after a shared failure the failed calls do not retry, and later calls share one fetch")
  func callsAfterFailure() async throws {
    let (gate, second) = (Latch(), Latch())
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      if number == 1 {
        try? await gate.wait()
        throw NetOptError(.connectFailed, phase: .connect, "nobody is there")
      }
      try? await second.wait()
      return CacheLab.response(request, 200, Self.fields, "answer \(number)")
    }
    let calls = try await start(1000, on: lab)
    gate.open()
    var failed = 0
    for call in calls { if case .failure = await call.result { failed += 1 } }
    #expect(failed == 1000)
    #expect(lab.sent == 1)
    #expect(try lab.inFlightFetches.count == 0 && lab.inFlightFetches.waiting == 0)
    let next = try await start(1, on: lab)[0]
    try await wait(for: "the next fetch") { lab.sent == 2 }
    let others = try await start(1000, on: lab)
    second.open()
    #expect(try await next.value == "answer 2")
    for call in others { #expect(try await call.value == "answer 2") }
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("waiting calls share a 503 response")
  func sharedServerError() async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      try? await gate.wait()
      return CacheLab.response(request, 503, [:], "busy \(number)")
    }
    let calls = try await start(100, on: lab)
    gate.open()
    for call in calls { #expect(try await call.value == "busy 1") }
    #expect(lab.sent == 1)
    await lab.client.shutdown()
  }

  /// The server does not accept the value 1 of `X-Odd`: it answers with status 503, or closes the connection.
  ///
  /// - Parameter isAnswered: whether it answers with status 503.
  @Test(
    "a failure caused by one caller's header field does not reach calls with other fields",
    arguments: [true, false])
  func rejectedField(_ isAnswered: Bool) async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      try? await gate.wait()
      guard request.headers["X-Odd"] == "1" else {
        return CacheLab.response(request, 200, Self.fields, "answer")
      }
      if isAnswered { return CacheLab.response(request, 503, [:], "odd") }
      throw NetOptError(.receiveFailed, phase: .receive, "odd")
    }
    let odd = try await start(5, on: lab) { $0.headers["X-Odd"] = "1" }
    let others = try await start(20, on: lab) { request in
      request.headers["X-Odd"] = "2"
      request.headers["traceparent"] = "\(UInt64.random(in: 0...UInt64.max))"
    }
    gate.open()
    for call in odd {
      if isAnswered {
        #expect(try await call.value == "odd")
      } else {
        await #expect(throws: NetOptError.self) { try await call.value }
      }
    }
    for call in others { #expect(try await call.value == "answer") }
    // One fetch for the calls with the value 1, and one for all others.
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("each waiting call fetches for itself when the response is no-store")
  func noStoreFetches() async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      try? await gate.wait()
      return CacheLab.response(request, 200, ["Cache-Control": "no-store"], "answer \(number)")
    }
    let calls = try await start(20, on: lab)
    gate.open()
    var texts: Set<String> = []
    for call in calls { texts.insert(try await call.value) }
    #expect(texts.count == 20)
    #expect(lab.sent == 20)
    await lab.client.shutdown()
  }

  @Test("a caller that does not read its body does not delay other calls")
  func slowReader() async throws {
    let body = GatedBody(["one ", "two ", "three"])
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      CacheLab.response(request, 200, Self.fields, ResponseBody(body))
    }
    // The first caller has the head and reads nothing.
    let first = try await lab.begin()
    #expect(try await lab.ask().text == "one two three")
    #expect(lab.sent == 1)
    #expect(try await first.body.collect(upTo: 100) == Array("one two three".utf8))
    await lab.client.shutdown()
  }

  @Test("waiting calls get the whole body when the first caller drops its response")
  func droppedBody() async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      let body = GatedBody(["one ", "two"], gates: [gate])
      return CacheLab.response(request, 200, Self.fields, ResponseBody(body))
    }
    var first: NetOptResponse? = try await lab.begin()
    let others = try await start(10, on: lab)
    #expect(first?.status == 200)
    first = nil
    gate.open()
    for call in others { #expect(try await call.value == "one two") }
    #expect(lab.sent == 1)
    await lab.client.shutdown()
  }

  @Test("a body above maxEntryBytes is not shared, and each waiting call fetches for itself")
  func largeBody() async throws {
    let gate = Latch()
    let lab = try CacheLab({ $0.maxEntryBytes = 5 }) { (request, number) throws(NetOptError) in
      let body = GatedBody(["1234", "5678", "\(number)"], gates: [gate])
      return CacheLab.response(request, 200, Self.fields, ResponseBody(body))
    }
    let calls = try await start(10, on: lab)
    gate.open()
    var texts: Set<String> = []
    for call in calls { texts.insert(try await call.value) }
    #expect(texts.count == 10)
    #expect(lab.sent == 10)
    await lab.client.shutdown()
  }

  @Test("a body that ends early fails all waiting calls after one fetch")
  func brokenBody() async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      let error = NetOptError(.receiveFailed, phase: .receive, "the connection was closed")
      return CacheLab.response(
        request, 200, Self.fields, ResponseBody(GatedBody(["one"], gates: [gate], failure: error)))
    }
    let calls = try await start(10, on: lab)
    gate.open()
    for call in calls { await #expect(throws: NetOptError.self) { try await call.value } }
    #expect(lab.sent == 1)
    await lab.client.shutdown()
  }

  @Test("a waiting call ends with a timeout at its own deadline")
  func waiterDeadline() async throws {
    let gate = Latch()
    // The transport ignores deadlines. So the call that makes the fetch gets the response even after its
    // deadline.
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      try? await gate.wait()
      return CacheLab.response(request, 200, Self.fields, "answer \(number)")
    }
    let calls = try await start(2, on: lab) { $0.options.timeout = .milliseconds(100) }
    try await wait(for: "the limit of the one that waits") { try lab.inFlightFetches.waiting == 0 }
    gate.open()
    var codes: [NetOptError.Code?] = []
    for call in calls {
      do {
        #expect(try await call.value == "answer 1")
        codes.append(nil)
      } catch { codes.append((error as? NetOptError)?.code) }
    }
    #expect(Set(codes) == [nil, .timeout])
    #expect(lab.sent == 1)
    await lab.client.shutdown()
  }

  @Test("a waiting call with time left fetches for the others when the first call times out")
  func leaderTimeout() async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      if number == 1 {
        try? await gate.wait()
        throw NetOptError(.timeout, phase: .receive, "the call's time limit passed")
      }
      return CacheLab.response(request, 200, Self.fields, "answer \(number)")
    }
    let change = { @Sendable (request: inout NetOptRequest) in request.options.timeout = .seconds(3) }
    let begun = SystemTimeSource().now()
    let first = try await start(1, on: lab, change)[0]
    try await wait(for: "the first fetch") { lab.sent == 1 }
    // The first call began two seconds before the others, so its deadline comes two seconds before theirs.
    try await wait(for: "time to pass") { SystemTimeSource().now() > begun + .seconds(2) }
    let others = try await start(10, on: lab, change)
    try await wait(for: "the limit of the first") { SystemTimeSource().now() > begun + .seconds(3) }
    gate.open()
    await #expect(throws: NetOptError.self) { try await first.value }
    for call in others { #expect(try await call.value == "answer 2") }
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  /// A fetch may fail because of the options of its request. A request with other options may succeed, so it
  /// must not share this failure.
  @Test(
    "a call with other request options does not share a fetch",
    arguments: [
      { $0.version = .http1 }, { $0.routing = .dns }, { $0.family = .v6 }, { $0.maxAttempts = 2 },
      { $0.timeout = .seconds(61) },
      { $0.connectTimeout = .seconds(1) }, { $0.directDespiteProxy = true }, { $0.connection = .fresh },
      { $0.hedges = true },
    ] as [@Sendable (inout RequestOptions) -> Void])
  func otherOptions(change: @escaping @Sendable (inout RequestOptions) -> Void)
    async throws
  {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      try? await gate.wait()
      return CacheLab.response(request, 200, Self.fields, "answer")
    }
    let calls = try await start(5, on: lab)
    let other = Task { try await lab.ask(.get, "/thing", [:]) { change(&$0.options) }.text }
    try await wait(for: "two fetches") { try lab.sent == 2 && lab.inFlightFetches.waiting == 4 }
    gate.open()
    for call in calls + [other] { #expect(try await call.value == "answer") }
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  /// The failure of one caller's request says nothing about the requests of other callers. One of the waiting
  /// calls fetches for all others.
  @Test(
    "an error in one caller's request does not fail the calls that wait for its fetch",
    arguments: [
      NetOptError.Code.invalidRequest, .bodyTooLarge, .unsupported, .signingFailed, .libraryFailed,
    ])
  func callersOwnFailure(code: NetOptError.Code) async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      try? await gate.wait()
      if number == 1 { throw NetOptError(code, phase: .send, "it is his") }
      return CacheLab.response(request, 200, Self.fields, "answer \(number)")
    }
    let first = try await start(1, on: lab)[0]
    try await wait(for: "the first fetch") { lab.sent == 1 }
    let others = try await start(10, on: lab)
    gate.open()
    await #expect(throws: NetOptError.self) { try await first.value }
    for call in others { #expect(try await call.value == "answer 2") }
    #expect(lab.sent == 2)
    await lab.client.shutdown()
  }

  @Test("calls with different values of a Vary field do not share a fetch")
  func varySelectors() async throws {
    let gate = Latch()
    let lab = try CacheLab { (request, number) throws(NetOptError) in
      if number > 1 { try? await gate.wait() }
      return CacheLab.response(
        request, 200, ["Cache-Control": "max-age=60", "Vary": "A"], request.headers["A"] ?? "none")
    }
    // After this response the cache knows the fields that the response depends on.
    _ = try await lab.ask()
    let calls = (0..<20).map { index in
      Task { try await lab.ask(.get, "/thing", ["A": "\(index % 2)"]).text }
    }
    try await wait(for: "the calls to join") { try lab.inFlightFetches.waiting == 18 }
    gate.open()
    for (index, call) in calls.enumerated() { #expect(try await call.value == "\(index % 2)") }
    #expect(lab.sent == 3)
    await lab.client.shutdown()
  }

  @Test("a 503 or a timeout ends the wait only of calls with the same header fields")
  func outcomesOfOthers() async throws {
    let clock = ManualTimeSource()
    let fetches = InFlightFetches(clock)
    // The fields of the call that makes the fetch.
    let mine: HeaderFields = ["X-Trial": "1"]
    let key = InFlightFetches.Key(
      key: try CacheKey(api: "a", parameters: ""), selectors: [], RequestOptions())
    // All calls have this deadline. So after the timeout of the fetch, no waiting call has time left to make
    // another one.
    let deadline = clock.now() + .seconds(60)
    let timeout = NetOptError(.timeout, phase: .receive, "too late")
    // The ways in which the fetch ends.
    let ends: [(String, @Sendable (InFlightFetches.Leader) -> Void)] = [
      ("503", { $0.complete(.staleIfError(503)) }),
      ("timeout", { $0.fail(timeout, deadline: deadline, at: deadline) }),
    ]
    for (name, end) in ends {
      let leader = try #require(fetches.lead(key, mine))
      let alike = Task { await fetches.join(key, mine, until: deadline) }
      let other = Task { await fetches.join(key, ["X-Trial": "2"], until: deadline) }
      try await wait(for: "both to join") { fetches.waiting == 2 }
      end(leader)
      switch (name, await alike.value) {
      case ("503", .staleIfError(503)), ("timeout", .failed): break
      case (_, let outcome): Issue.record("\(name): who has the same fields gets \(outcome)")
      }
      guard case .failedWithOtherFields = await other.value else {
        Issue.record("\(name): who has other fields gets an outcome that may depend on them")
        continue
      }
    }
    #expect(fetches.count == 0 && fetches.waiting == 0)
  }
}
