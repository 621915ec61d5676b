import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Name servers that do not answer, cancelled look-ups, and the shutdown of the resolver.
@Suite(.timeLimit(.minutes(1))) struct CachingResolverEndsTests {
  private let v4 = IPAddress(v4: 0x7f00_0002)

  // MARK: Name servers that do not answer

  @Test("a look-up queries a silent server twice per family, and its failure is cached for 1 s")
  func silentServer() async throws {
    let server = try FakeNameServer(.holding)
    let time = ManualTimeSource()
    try await withResolver(asking: [server.endpoint], timeout: .milliseconds(50), timeSource: time) {
      resolver in
      for round in 1...2 {
        let error = await #expect(throws: NetOptError.self) { try await resolver.resolve("api.test") }
        #expect(error?.code == .resolverFailed)
        #expect(error?.isRetryable == true)
        #expect(error?.message.contains("in time") == true)
        #expect(error?.message.contains(server.endpoint.description) == true)
        // Each round sends two queries for each of the two families (A and AAAA).
        #expect(server.questionCount == 4 * round)
        // The failure is cached, so the resolver sends no query.
        await #expect(throws: NetOptError.self) { try await resolver.resolve("api.test") }
        #expect(server.questionCount == 4 * round)
        time.advance(by: .seconds(1))
      }
    }
    server.stop()
  }

  @Test("a look-up at a closed port fails at once and names the port")
  func closedPort() async throws {
    // Nothing listens on the port. If the look-up waited for its timeouts, it would take minutes.
    try await withResolver(asking: [IPEndpoint(.loopback, port: 1)], timeout: .seconds(60)) { resolver in
      let error = await #expect(throws: NetOptError.self) { try await resolver.resolve("api.test") }
      #expect(error?.code == .resolverFailed)
      #expect(error?.message.contains("127.0.0.1:1") == true)
      #expect(error?.underlying?.library == .ares)
    }
  }

  /// SERVFAIL (2) and REFUSED (5).
  @Test("a look-up fails when the server answers SERVFAIL or REFUSED", arguments: [2, 5] as [UInt8])
  func failureCodes(code: UInt8) async throws {
    let server = try FakeNameServer(.code(code))
    try await withResolver(asking: [server.endpoint], timeout: .seconds(60)) { resolver in
      let error = await #expect(throws: NetOptError.self) { try await resolver.resolve("api.test") }
      #expect(error?.code == .resolverFailed)
      #expect(error?.message.contains(server.endpoint.description) == true)
    }
    server.stop()
  }

  // MARK: Cancellation

  @Test("cancelling one waiter affects neither the other waiters nor the look-up")
  func cancelledWaiter() async throws {
    let server = try FakeNameServer(.holding)
    try await withResolver(asking: [server.endpoint], timeout: .seconds(60)) { resolver in
      let tasks = (0..<3).map { _ in Task { try await resolver.resolve("api.test").addresses } }
      try await server.wait(forQuestions: 2)
      tasks[0].cancel()
      let error = await #expect(throws: NetOptError.self) { try await tasks[0].value }
      #expect(error?.code == .cancelled)
      server.answer(with: v4)
      try await #expect(tasks[1].value == [v4])
      try await #expect(tasks[2].value == [v4])
      #expect(server.questionCount == 2)
    }
    server.stop()
  }

  @Test("a look-up whose only waiter was cancelled serves the next caller")
  func abandonedLookUp() async throws {
    let server = try FakeNameServer(.holding)
    try await withResolver(asking: [server.endpoint], timeout: .seconds(60)) { resolver in
      let task = Task { try await resolver.resolve("api.test") }
      try await server.wait(forQuestions: 2)
      task.cancel()
      await #expect(throws: NetOptError.self) { try await task.value }
      server.answer(with: v4)
      try await #expect(resolver.resolve("api.test").addresses == [v4])
      #expect(server.questionCount == 2)
    }
    server.stop()
  }

  /// When the network changes, the resolver queries again for each look-up under way, on new sockets. The
  /// callers that wait for the look-up get the new answer.
  @Test("a change of the network restarts look-ups under way, and cached names are looked up again")
  func networkChange() async throws {
    let server = try FakeNameServer(.holding)
    defer { server.stop() }
    try await withResolver(asking: [server.endpoint], timeout: .seconds(60)) { resolver in
      let waiting = Task { try await resolver.resolve("api.example.com") }
      try await server.wait(forQuestions: 2)
      for round in 2...4 {
        resolver.networkChanged()
        try await server.wait(forQuestions: 2 * round)
      }
      server.answer(with: .loopback)
      #expect(try await waiting.value.addresses == [.loopback])
      resolver.networkChanged()
      let again = Task { try await resolver.resolve("api.example.com") }
      try await server.wait(forQuestions: 10)
      server.answer(with: .loopback)
      #expect(try await again.value.addresses == [.loopback])
    }
  }

  @Test("resolving a name in a cancelled task fails without waiting")
  func cancelledTask() async throws {
    let server = try FakeNameServer(.holding)
    try await withResolver(asking: [server.endpoint], timeout: .seconds(60)) { resolver in
      for fresh in [false, true] {
        let started = Latch()
        let task = Task {
          // The task is cancelled before it resolves the name.
          try? await started.wait()
          return try await resolver.resolve("api.test", fresh: fresh)
        }
        task.cancel()
        let error = await #expect(throws: NetOptError.self) { try await task.value }
        #expect(error?.code == .cancelled)
      }
    }
    server.stop()
  }

  // MARK: Shutdown

  @Test("shutdown fails the look-ups under way and all later ones with shutDown")
  func shutdownFailsLookUps() async throws {
    let server = try FakeNameServer(.holding)
    let loop = try EventLoop()
    let resolver = try CachingResolver(loop, .asking([server.endpoint], timeout: .seconds(60)))
    let tasks = [false, true].map { fresh in
      Task { try await resolver.resolve("api.test", fresh: fresh) }
    }
    try await server.wait(forQuestions: 4)
    await resolver.shutdown()
    for task in tasks {
      let error = await #expect(throws: NetOptError.self) { try await task.value }
      #expect(error?.code == .shutDown)
    }
    await resolver.shutdown()
    let error = await #expect(throws: NetOptError.self) { try await resolver.resolve("api.test") }
    #expect(error?.code == .shutDown)
    loop.stop()
    server.stop()
  }

  @Test("a look-up after the stop of the loop fails with shutDown")
  func stoppedLoop() async throws {
    let loop = try EventLoop()
    let resolver = try CachingResolver(loop, .asking([IPEndpoint(.loopback, port: 1)]))
    loop.stop()
    for fresh in [false, true] {
      let error = await #expect(throws: NetOptError.self) {
        try await resolver.resolve("api.test", fresh: fresh)
      }
      #expect(error?.code == .shutDown)
    }
    await resolver.shutdown()
  }

  @Test("every look-up during a shutdown ends, with an answer or with shutDown")
  func lookUpsDuringShutdown() async throws {
    let server = try await DNSServer.start(["api.test": [v4]])
    for _ in 0..<50 {
      let loop = try EventLoop()
      let resolver = try CachingResolver(loop, .asking([server.endpoint]))
      await withTaskGroup { group in
        for _ in 0..<4 {
          group.addTask {
            let error = await #expect(throws: NetOptError.self) {
              while true { _ = try await resolver.resolve("api.test", fresh: true) }
            }
            #expect(error?.code == .shutDown)
          }
        }
        group.addTask {
          _ = try? await resolver.resolve("api.test", fresh: true)
          await resolver.shutdown()
          loop.stop()
        }
      }
    }
    server.stop()
  }

  @Test("the resolver opens no socket before the first look-up, and shutdown closes all sockets")
  func socketsAndShutdown() async throws {
    await #expect(processExitsWith: .success) {
      let server = try FakeNameServer(.holding)
      let loop = try EventLoop()
      let before = openSockets()
      let resolver = try CachingResolver(loop, .asking([server.endpoint], timeout: .seconds(60)))
      _ = try await resolver.resolve("127.0.0.1")
      #expect(openSockets() == before)
      let task = Task { try await resolver.resolve("api.test") }
      try await server.wait(forQuestions: 2)
      #expect(openSockets() > before)
      await resolver.shutdown()
      #expect(openSockets() == before)
      _ = try? await task.value
      loop.stop()
      server.stop()
    }
  }

  @Test("the resolver closes its sockets when no look-up is under way")
  func idleSockets() async throws {
    await #expect(processExitsWith: .success) {
      let server = try FakeNameServer(.code(2))
      let loop = try EventLoop()
      let before = openSockets()
      let resolver = try CachingResolver(loop, .asking([server.endpoint]))
      _ = try? await resolver.resolve("api.test")
      #expect(openSockets() == before)
      // The resolver is released without a call of `shutdown`. Its release also closes the channel of c-ares.
      loop.stop()
      server.stop()
    }
  }
}
