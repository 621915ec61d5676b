import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// When later requests do not use a connection again: after calls on it timed out, or after it was idle.
@Suite struct RetirementTests {
  /// The server stops responding and does not close the connection. When a call times out, libcurl ends only
  /// the call's HTTP/2 stream and keeps the connection. netopt therefore ends the connection itself.
  @Test("after two timeouts in a row without a byte, the next request uses a new connection")
  func consecutiveTimeouts() async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench()
    let addresses = origin.endpoints.map(\.address)
    let url = "https://api.test:\(origin.port)"
    for _ in 0..<2 { _ = try await bench.execute(try NetOptRequest(.get, url + "/"), addresses) }
    origin.freeze()
    var request = try NetOptRequest(.get, url + "/late")
    request.options.timeout = .milliseconds(150)
    for round in 0..<2 {
      let error = await failure { () throws(NetOptError) in _ = try await bench.execute(request, addresses) }
      #expect(error?.code == .timeout)
      #expect(error?.route?.winner?.reused == true, "round \(round)")
    }
    origin.thaw()
    let response = try await bench.execute(try NetOptRequest(.get, url + "/after"), addresses)
    #expect(!response.reused)
    let log = try await origin.waitForLog(1) { $0.target == "/after" }
    let first = try await origin.waitForLog(2) { $0.target == "/" }
    #expect(log[0].connection != first[0].connection)
    await bench.end()
  }

  @Test("after concurrent timeouts, the next request uses the same connection")
  func concurrentTimeouts() async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench()
    let addresses = origin.endpoints.map(\.address)
    let url = "https://api.test:\(origin.port)"
    _ = try await bench.execute(try NetOptRequest(.get, url + "/"), addresses)
    var request = try NetOptRequest(.get, url + "/late")
    request.options.timeout = .milliseconds(150)
    let late = request
    for _ in 0..<3 {
      origin.freeze()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<10 { group.addTask { _ = try? await bench.execute(late, addresses) } }
      }
      origin.thaw()
      // A response arrives between two rounds of timeouts, so the next round begins a new count. Within a
      // round, the timeouts of concurrent calls count once.
      let response = try await bench.execute(try NetOptRequest(.get, url + "/"), addresses)
      #expect(response.reused)
    }
    await bench.end()
  }

  @Test("a connection that is idle for longer than idleAge is not reused")
  func idleConnection() async throws {
    let origin = try await NginxOrigin.start(for: ["api.test"], on: IPAddress.freshLoopback(1))
    defer { origin.stop() }
    let bench = try await TransportBench { $0.idleAge = .seconds(1) }
    let request = try NetOptRequest(.get, "https://api.test:\(origin.port)/")
    let addresses = origin.endpoints.map(\.address)
    _ = try await bench.execute(request, addresses).body.collect(upTo: 100)
    #expect(try await bench.execute(request, addresses).reused)
    let idle = bench.loop.now()
    // libcurl counts the idle time in whole seconds, so 1.9 s would count as 1 s.
    try await wait(for: "the connection's age") { bench.loop.now() - idle > .milliseconds(2050) }
    #expect(try await !bench.execute(request, addresses).reused)
    await bench.end()
  }
}
