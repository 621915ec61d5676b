import NetOptCore
import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Connections when the machine moves to another network. The tests only report the move
/// (`CurlTransport.networkChanged`). The origins stay reachable.
@Suite struct ConnectionsOfANetworkTests {
  /// Sends a GET request for a path, and returns the response.
  private func get(
    _ bench: TransportBench, _ origin: NginxOrigin, _ target: String = "/",
    _ version: RequestOptions.Version = .automatic
  ) async throws -> NetOptResponse {
    var request = try NetOptRequest(.get, "https://api.test:\(origin.port)\(target)")
    request.options.version = version
    return try await bench.execute(request, origin.endpoints.map(\.address))
  }

  @Test(
    "the first request after a network change opens a new connection",
    arguments: [RequestOptions.Version.automatic, .http1])
  func newConnections(version: RequestOptions.Version) async throws {
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

  /// Two streams are open when the network changes, so the old HTTP/2 connection stays open. libcurl could
  /// share it with new requests, but must not.
  @Test("after a network change, streams end on the old connection and new requests use another")
  func runningStreams() async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench()
    let slow = try await get(bench, origin, "/slow-body?s=0.3")
    let waiting = Task { try await get(bench, origin, "/slow?s=0.3") }
    // This request follows the request for `/slow` on the connection. When its response is here, the request
    // for `/slow` has been sent.
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

  /// In the old network no server would respond any more. The race there would last until its time limits, so
  /// no call may wait for it.
  @Test("calls that wait for a race start one new race after a network change, and can be cancelled")
  func waitingCalls() async throws {
    // The server accepts TCP connections and sends nothing, so no TLS handshake completes.
    let server = try LoopbackServer(.silent)
    defer { server.stop() }
    let bench = try await TransportBench()
    let address = server.endpoint.address
    let request = try NetOptRequest(.get, "https://api.test:\(server.endpoint.port)/")
    let calls = (0..<3).map { _ in Task { try await bench.execute(request, [address]) } }
    try await wait(for: "the race") { server.connections == 1 }
    // In each network, one call runs the race and opens one connection. The other calls wait for its race.
    bench.transport.networkChanged()
    try await wait(for: "a race in the new network") { server.connections == 2 }
    bench.transport.networkChanged()
    try await wait(for: "a race in the newest network") { server.connections == 3 }
    // Each call can still be cancelled, whether it races or waits.
    for call in calls {
      call.cancel()
      let error = await failure { () throws(NetOptError) in
        do { _ = try await call.value } catch let error as NetOptError { throw error } catch {}
      }
      #expect(error?.code == .cancelled)
    }
    await bench.end()
  }

  @Test("a call that waits for a race keeps its deadline after a network change")
  func keptDeadline() async throws {
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
    // The event loop runs its tasks in order. After this empty task, the call waits for the race of `first`.
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

  @Test("after a network change, an old connection closes as soon as no transfer uses it")
  func oldConnectionsClose() async throws {
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
      // The connection of this transfer closes when the transfer ends.
      let slow = try await bench.execute(try NetOptRequest(.get, url + "/slow-body?s=0.2"), addresses)
      bench.transport.networkChanged()
      _ = try await slow.body.collect(upTo: 100)
      try await wait(for: "that one to be closed") { ProcessFootprint.now.descriptors < before }
      // The transport can also end while a transfer uses an old connection: nobody reads this body.
      let unread = try await bench.execute(try NetOptRequest(.get, url + "/bytes/10000000"), addresses)
      bench.transport.networkChanged()
      await bench.end()
      withExtendedLifetime(unread) {}
      let after = ProcessFootprint.now
      #expect(after.descriptors < before && !after.threadNames.contains("netopt-loop"))
    }
  }

  @Test("a warm-up along DNS opens the connection of the next request, or fails with connectFailed")
  func warmUp() async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench(answers: origin.endpoints.map(\.address))
    let request = try NetOptRequest(.head, "https://api.test:\(origin.port)/")
    let now = bench.loop.now()
    let context = CallContext(id: 1, started: now, deadline: now + .seconds(10))
    // The only leg of the plan is DNS, so the warm-up must look up the addresses first.
    let route = try await bench.transport.warmUp(
      request, along: bench.plan(request.url, [], dns: true), in: context)
    #expect(route.legs.map(\.address) == origin.endpoints.map(\.address))
    #expect(route.legs.first?.secured != nil)
    let response = try await get(bench, origin)
    #expect(response.reused)
    #expect(try await origin.waitForLog(1).map(\.target) == ["/"])
    // Nothing listens on port 1.
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
