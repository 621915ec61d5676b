import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// What becomes of connections when the machine is in another network.
@Suite struct ConnectionsOfANetworkTests {
  private func get(
    _ bench: TransportBench, _ origin: NginxOrigin, _ target: String = "/",
    _ version: RequestOptions.Version = .automatic
  ) async throws -> NetOptResponse {
    var request = try NetOptRequest(.get, "https://api.test:\(origin.port)\(target)")
    request.options.version = version
    return try await bench.execute(request, origin.endpoints.map(\.address))
  }

  @Test(arguments: [RequestOptions.Version.automatic, .http1])
  func connectionsOfTheOldOneAreNotUsedAgain(version: RequestOptions.Version) async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench()
    for round in 0..<6 {
      if round == 2 || round == 4 { bench.transport.networkChanged() }
      let response = try await get(bench, origin, "/", version)
      _ = try await response.body.collect(upTo: 100)
      #expect(response.reused == !round.isMultiple(of: 2))
    }
    let connections = try await origin.waitForLog(6).map(\.connection)
    #expect(Set(connections).count == 3)
    #expect(connections[0] == connections[1] && connections[2] == connections[3])
    await bench.end()
  }

  /// Over HTTP/2 the old connection is open and carries a stream: it would take the new one as well.
  @Test func whatIsUnderWayGoesOnAndSharesItsConnectionWithNothingNew() async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench()
    let slow = try await get(bench, origin, "/slow-body?s=0.3")
    let waiting = Task { try await get(bench, origin, "/slow?s=0.3") }
    // It has been sent when this one, which comes after it on the same connection, has its answer.
    try await wait(for: "the slow one to be under way") {
      _ = try await get(bench, origin, "/text").body.collect(upTo: 100_000)
      return true
    }
    bench.transport.networkChanged()
    for _ in 0..<5 {
      let response = try await get(bench, origin)
      _ = try await response.body.collect(upTo: 100)
    }
    #expect(try await slow.body.collect(upTo: 100) == Array("first\nlast\n".utf8))
    #expect(try await waiting.value.status == 200)
    let log = try await origin.waitForLog(8)
    let old = Set(log.filter { $0.target.hasPrefix("/slow") }.map(\.connection))
    let new = Set(log.filter { $0.target == "/" }.map(\.connection))
    #expect(old.count == 1 && new.count == 1)
    #expect(old.isDisjoint(with: new))
    await bench.end()
  }

  /// A race may take as long as its limits allow where nobody answers any more.
  @Test func whoWaitsForARaceOfTheOldOneGoesOnInTheNewOne() async throws {
    // TCP is connected, and TLS goes unanswered.
    let server = try LoopbackServer(.silent)
    defer { server.stop() }
    let bench = try await TransportBench()
    let address = server.endpoint.address
    let request = try NetOptRequest(.get, "https://api.test:\(server.endpoint.port)/")
    let calls = (0..<3).map { _ in Task { try await bench.execute(request, [address]) } }
    try await wait(for: "the race") { server.connections == 1 }
    // One after the other: of those who wait, one runs the race that the others wait for.
    bench.transport.networkChanged()
    try await wait(for: "a race in the new network") { server.connections == 2 }
    bench.transport.networkChanged()
    try await wait(for: "a race in the newest network") { server.connections == 3 }
    // Each of them can be ended still, wherever it is.
    for call in calls {
      call.cancel()
      let error = await failure { () throws(NetOptError) in
        do { _ = try await call.value } catch let error as NetOptError { throw error } catch {}
      }
      #expect(error?.code == .cancelled)
    }
    await bench.end()
  }

  @Test func whoGoesOnInTheNewOneKeepsItsDeadline() async throws {
    let server = try LoopbackServer(.silent)
    defer { server.stop() }
    let bench = try await TransportBench()
    let address = server.endpoint.address
    var request = try NetOptRequest(.get, "https://api.test:\(server.endpoint.port)/")
    let first = Task { [request] in try await bench.execute(request, [address]) }
    try await wait(for: "the race") { server.connections == 1 }
    request.options.timeout = .milliseconds(300)
    let executor = LoopTaskExecutor(bench.loop)
    let waiting = Task(executorPreference: executor) { [request] in
      try await bench.execute(request, [address])
    }
    // The loop performs what it is given in turn: by now the call waits for the first one's race.
    await Task(executorPreference: executor) {}.value
    bench.transport.networkChanged()
    let error = await failure { () throws(NetOptError) in
      do { _ = try await waiting.value } catch let error as NetOptError { throw error } catch {}
    }
    #expect(error?.code == .timeout)
    first.cancel()
    _ = try? await first.value
    await bench.end()
  }

  @Test func theOldConnectionsAreClosedWhenNothingIsUnderWayOnThem() async throws {
    await #expect(processExitsWith: .success) {
      let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
      defer { origin.stop() }
      let bench = try await TransportBench()
      let url = "https://api.test:\(origin.port)"
      let addresses = origin.endpoints.map(\.address)
      _ = try await bench.execute(try NetOptRequest(.get, url + "/"), addresses).body.collect(upTo: 100)
      let before = ProcessFootprint.now.descriptors
      for _ in 0..<10 {
        bench.transport.networkChanged()
        _ = try await bench.execute(try NetOptRequest(.get, url + "/"), addresses).body.collect(upTo: 100)
      }
      try await wait(for: "the old ones to be closed") { ProcessFootprint.now.descriptors <= before }
      // One that is used to its end is closed then.
      let slow = try await bench.execute(try NetOptRequest(.get, url + "/slow-body?s=0.2"), addresses)
      bench.transport.networkChanged()
      _ = try await slow.body.collect(upTo: 100)
      try await wait(for: "that one to be closed") { ProcessFootprint.now.descriptors < before }
      // The end comes with an old one in use as well.
      let unread = try await bench.execute(try NetOptRequest(.get, url + "/bytes/10000000"), addresses)
      bench.transport.networkChanged()
      await bench.end()
      withExtendedLifetime(unread) {}
      let after = ProcessFootprint.now
      #expect(after.descriptors < before && !after.threadNames.contains("netopt-loop"))
    }
  }

  @Test func aConnectionThatIsWarmIsUsedByTheNextRequest() async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench(answers: origin.endpoints.map(\.address))
    let request = try NetOptRequest(.head, "https://api.test:\(origin.port)/")
    let now = bench.loop.now()
    let context = CallContext(id: 1, started: now, deadline: now + .seconds(10))
    // Along DNS, which no single leg could do.
    let route = try await bench.transport.warmUp(
      request, along: bench.plan(request.url, [], dns: true), in: context)
    #expect(route.legs.map(\.address) == origin.endpoints.map(\.address))
    #expect(route.legs.first?.secured != nil)
    let response = try await get(bench, origin)
    #expect(response.reused)
    #expect(try await origin.waitForLog(1).map(\.target) == ["/"])
    let nobody = await failure { () throws(NetOptError) in
      _ = try await bench.transport.warmUp(
        NetOptRequest(.head, "https://api.test:1/"),
        along: bench.plan(try HTTPURL("https://api.test:1/"), [.loopback]),
        in: context)
    }
    #expect(nobody?.code == .connectFailed)
    #expect(nobody?.route?.legs.count == 1)
    await bench.end()
  }
}
