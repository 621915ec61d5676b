import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Races between endpoints on loopback. The first endpoints are faulty, and the last one is nginx.
@Suite struct RaceOnLoopbackTests {
  /// The endpoints of a race, all at one port: an origin at the last address, and a faulty endpoint at each
  /// other address.
  private struct Field {
    let addresses: [IPAddress]
    /// The origin at the last address.
    let origin: NginxOrigin
    /// The faulty servers. An address without a server refuses connections.
    let others: [LoopbackServer]

    /// - Parameter bad: the behaviour of each faulty endpoint; `nil` for one that refuses connections.
    init(_ bad: [LoopbackServer.Behaviour?]) async throws {
      addresses = IPAddress.freshLoopback(bad.count + 1)
      let port = try FreePort.find(on: addresses)
      origin = try await NginxOrigin.start(for: ["api.test"], on: [addresses[bad.count]], port: port)
      others = try zip(bad, addresses).compactMap { behaviour, address in
        try behaviour.map { try LoopbackServer($0, on: address, port: port) }
      }
    }

    var url: String { "https://api.test:\(origin.port)/echo" }

    func stop() {
      origin.stop()
      for server in others { server.stop() }
    }
  }

  @Test("a race starts the next leg at once when an endpoint refuses the connection")
  func refusedEndpoints() async throws {
    let field = try await Field([nil, nil])
    defer { field.stop() }
    let bench = try await TransportBench()
    let response = try await bench.execute(try NetOptRequest(.get, field.url), field.addresses)
    #expect(response.remote?.address == field.addresses[2])
    #expect(response.route.legs.map(\.outcome) == [.failed, .failed, .won])
    #expect(response.route.legs.prefix(2).allSatisfy { $0.failure?.kind == .refused })
    // The stagger of a leg is 250 ms. The race did not wait for one.
    #expect(response.timings.timeToFirstByte < .milliseconds(250))
    await bench.end()
  }

  @Test(
    "a silent endpoint delays the race by 250 ms, or 500 ms with TCP connected, and only once",
    arguments: [LoopbackServer.Behaviour.blackHole, .silent])
  func silentEndpoint(_ behaviour: LoopbackServer.Behaviour) async throws {
    let field = try await Field([behaviour])
    defer { field.stop() }
    let bench = try await TransportBench()
    let response = try await bench.execute(try NetOptRequest(.get, field.url), field.addresses)
    #expect(response.remote?.address == field.addresses[1])
    #expect(response.route.legs.map(\.outcome) == [.cancelled, .won])
    let waited = response.route.legs[1].started
    // Without history, the stagger of a leg is 250 ms. It becomes twice as long when the leg's TCP is
    // connected and its TLS handshake is under way.
    let isTLSUnderWay = if case .silent = behaviour { true } else { false }
    #expect(waited >= .milliseconds(isTLSUnderWay ? 500 : 250))
    #expect((response.route.legs[0].connected != nil) == isTLSUnderWay)
    // The next request does not wait: it uses the open connection.
    let second = try await bench.execute(
      try NetOptRequest(.get, field.url), Array(field.addresses.reversed()))
    #expect(second.reused)
    #expect(second.route.legs.count == 1)
    await bench.end()
  }

  @Test("a leg gets a second stagger only if its own TCP is connected")
  func secondStagger() async throws {
    let field = try await Field([.silent, .blackHole])
    defer { field.stop() }
    let bench = try await TransportBench()
    let response = try await bench.execute(try NetOptRequest(.get, field.url), field.addresses)
    let starts = response.route.legs.map(\.started)
    #expect(starts.count == 3)
    #expect(starts[1] - starts[0] >= .milliseconds(500))
    #expect(starts[2] - starts[1] >= .milliseconds(250))
    #expect(starts[2] - starts[1] < .milliseconds(500))
    await bench.end()
  }

  @Test("a race sends a POST once to the winner and to no other server")
  func post() async throws {
    let field = try await Field([.silent, nil, .blackHole, .closing])
    defer { field.stop() }
    let bench = try await TransportBench()
    let request = try NetOptRequest(.post, field.url, body: .text("once"))
    let response = try await bench.execute(request, field.addresses)
    let echo = String(decoding: try await response.body.collect(upTo: 10_000), as: UTF8.self)
    #expect(echo.hasPrefix("POST /echo"))
    #expect(echo.hasSuffix("once"))
    #expect(response.attempts == 1)
    #expect(try await field.origin.waitForLog(1).count == 1)
    for server in field.others {
      for bytes in server.received {
        // The faulty servers receive a ClientHello at most, and never the request.
        #expect(!String(decoding: bytes, as: UTF8.self).contains("once"))
      }
    }
    await bench.end()
  }

  @Test("a race tries DNS last and does not retry an answer that failed from the list")
  func dnsIsLast() async throws {
    let field = try await Field([nil, .blackHole])
    defer { field.stop() }
    let bench = try await TransportBench(answers: [field.addresses[0], field.addresses[2]])
    let response = try await bench.execute(
      try NetOptRequest(.get, field.url), Array(field.addresses[..<2]), dns: true)
    #expect(response.route.source == .dns)
    #expect(response.route.fallback == .noAnswerInTime)
    // DNS returns the first and the third address. The race tries the first address only once, because it
    // has already failed as a leg of the list.
    #expect(response.route.legs.map(\.address) == field.addresses)
    await bench.end()
  }

  @Test(
    "a race with eight silent listed addresses uses the DNS answer within 1.5 s",
    arguments: [LoopbackServer.Behaviour.blackHole, .silent])
  func dnsAfterSilentList(_ behaviour: LoopbackServer.Behaviour) async throws {
    let field = try await Field([LoopbackServer.Behaviour?](repeating: behaviour, count: 8))
    defer { field.stop() }
    let bench = try await TransportBench(answers: [field.addresses[8]])
    let response = try await bench.execute(
      try NetOptRequest(.get, field.url), Array(field.addresses[..<8]), dns: true)
    #expect(response.remote?.address == field.addresses[8])
    #expect(response.route.fallback == .noAnswerInTime)
    #expect(response.timings.timeToFirstByte < .milliseconds(1500))
    await bench.end()
  }

  @Test("a race tries a DNS answer early, and only once, if it is also the last of a long list")
  func listedAnswer() async throws {
    let field = try await Field([LoopbackServer.Behaviour?](repeating: .blackHole, count: 6))
    defer { field.stop() }
    // DNS answers with the last address of the list.
    let bench = try await TransportBench(answers: [field.addresses[6]])
    let response = try await bench.execute(try NetOptRequest(.get, field.url), field.addresses, dns: true)
    #expect(response.remote?.address == field.addresses[6])
    #expect(response.route.source == .dns)
    #expect(response.route.legs.count { $0.address == field.addresses[6] } == 1)
    #expect(response.timings.timeToFirstByte < .milliseconds(1500))
    await bench.end()
  }

  @Test("a call cancels its DNS look-up when a listed endpoint wins")
  func lookUpIsCancelled() async throws {
    let field = try await Field([.blackHole, .blackHole, .blackHole])
    defer { field.stop() }
    let look = SilentAnswers()
    let bench = try await TransportBench(legs: look)
    // No leg is ready 1 s after the start, so the race starts the look-up. The race has at most three legs of
    // the list under way at once. So it tries the fourth address when the first leg ends, after 1.2 s.
    var request = try NetOptRequest(.get, field.url)
    request.options.connectTimeout = .milliseconds(1200)
    let response = try await bench.execute(request, field.addresses, dns: true)
    #expect(response.remote?.address == field.addresses[3])
    let leg = try #require(response.route.legs.first { $0.source == .dns })
    #expect(leg.outcome == .cancelled)
    #expect(leg.ended > leg.started)
    try await wait(for: "the look-up to be cancelled") { look.cancelled.events.count == 1 }
    await bench.end()
  }

  @Test("when all legs fail, the error has the route of all legs and counts the other addresses")
  func allLegsFail() async throws {
    let addresses = IPAddress.freshLoopback(3)
    let port = try FreePort.find(on: addresses)
    let bench = try await TransportBench(answers: [addresses[2]])
    let request = try NetOptRequest(.get, "https://api.test:\(port)/")
    let error = await failure { () throws(NetOptError) in
      _ = try await bench.execute(request, Array(addresses[..<2]), dns: true)
    }
    #expect(error?.code == .connectFailed)
    #expect(error?.isRetryable == true)
    // All legs failed in the same way, so the error names the endpoint whose text comes first in alphabetical
    // order.
    let endpoints = addresses.map { IPEndpoint($0, port: port) }.sorted { "\($0)" < "\($1)" }
    #expect(error?.endpoint == endpoints[0])
    #expect(
      error?.message
        == "\(endpoints[0]) refused the connection; besides, 2 other addresses refused the connection")
    #expect(error?.route?.legs.map(\.address) == addresses)
    #expect(error?.route?.fallback == .allFailed)
    await bench.end()
  }

  @Test("twenty calls at once run one race and share its connection")
  func sharedRace() async throws {
    let field = try await Field([.blackHole])
    defer { field.stop() }
    let bench = try await TransportBench()
    let responses = try await withThrowingTaskGroup(of: NetOptResponse.self) { group in
      for _ in 0..<20 {
        group.addTask { try await bench.execute(try NetOptRequest(.get, field.url), field.addresses) }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(responses.count == 20)
    // One call ran the race. The other calls used the winner's connection directly.
    #expect(responses.count { $0.route.legs.count == 2 } == 1)
    #expect(responses.count { $0.reused } == 19)
    #expect(Set(try await field.origin.waitForLog(20).map(\.connection)).count == 1)
    await bench.end()
  }

  @Test("a call does not use the winner of another race if its own plan excludes that endpoint")
  func excludedWinner() async throws {
    let addresses = IPAddress.freshLoopback(3)
    let port = try FreePort.find(on: addresses)
    let origin = try await NginxOrigin.start(for: ["api.test"], on: Array(addresses[1...]), port: port)
    let silent = try LoopbackServer(.silent, on: addresses[0], port: port)
    defer {
      origin.stop()
      silent.stop()
    }
    let bench = try await TransportBench(answers: [addresses[2]])
    let request = try NetOptRequest(.get, "https://api.test:\(port)/echo")
    async let first = bench.execute(request, Array(addresses[..<2]))
    try await wait(for: "the first call to race") { silent.connections == 1 }
    let second = try await bench.execute(request, [addresses[2]], dns: true)
    #expect(try await first.remote?.address == addresses[1])
    #expect(second.remote?.address == addresses[2])
    #expect(second.route.source == .list)
    await bench.end()
  }

  @Test("a call with DNS alone reuses connections to DNS answers, but not to listed endpoints")
  func dnsAlone() async throws {
    let addresses = IPAddress.freshLoopback(2)
    let port = try FreePort.find(on: addresses)
    let origin = try await NginxOrigin.start(for: ["api.test"], on: addresses, port: port)
    defer { origin.stop() }
    let bench = try await TransportBench(answers: [addresses[1]])
    let request = try NetOptRequest(.get, "https://api.test:\(port)/echo")
    let listed = try await bench.execute(request, [addresses[0]])
    #expect(listed.remote?.address == addresses[0])
    let answered = try await bench.execute(request, [], dns: true)
    #expect(answered.remote?.address == addresses[1])
    #expect(answered.route.source == .dns)
    // The next call finds the connection to the answer and needs no look-up.
    let again = try await bench.execute(request, [], dns: true)
    #expect(again.remote?.address == addresses[1])
    #expect(again.reused)
    await bench.end()
  }

  @Test("calls that wait for a race share its connect timeout, which counts as one failure")
  func sharedFailure() async throws {
    let addresses = IPAddress.freshLoopback(1)
    let port = try FreePort.find(on: addresses)
    let server = try LoopbackServer(.blackHole, on: addresses[0], port: port)
    defer { server.stop() }
    let bench = try await TransportBench()
    var request = try NetOptRequest(.get, "https://api.test:\(port)/")
    request.options.connectTimeout = .milliseconds(300)
    let sent = request
    let errors = await withTaskGroup(of: NetOptError?.self) { group in
      for _ in 0..<10 {
        group.addTask {
          await failure { () throws(NetOptError) in _ = try await bench.execute(sent, addresses) }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(errors.allSatisfy { $0?.code == .timeout && $0?.phase == .connect })
    #expect(errors.allSatisfy { $0?.route?.legs.first?.failure?.kind == .connectTimeout })
    // `isShared` is false in the error of the call that ran the race, and true in the other errors. The
    // planner counts the legs only for the call that ran the race.
    #expect(errors.count { $0?.route?.isShared == false } == 1)
    await bench.end()
  }

  @Test("a call with a longer connect timeout does not share a failure and runs its own race")
  func longerTimeout() async throws {
    let addresses = IPAddress.freshLoopback(1)
    let port = try FreePort.find(on: addresses)
    let server = try LoopbackServer(.silent, on: addresses[0], port: port)
    defer { server.stop() }
    let bench = try await TransportBench()
    var hasty = try NetOptRequest(.get, "https://api.test:\(port)/")
    hasty.options.connectTimeout = .milliseconds(200)
    var patient = hasty
    patient.options.connectTimeout = .milliseconds(400)
    let (first, second) = (hasty, patient)
    async let one = failure { () throws(NetOptError) in _ = try await bench.execute(first, addresses) }
    try await wait(for: "the first call to race") { server.connections == 1 }
    let other = await failure { () throws(NetOptError) in _ = try await bench.execute(second, addresses) }
    #expect(await one?.route?.isShared == false)
    #expect(other?.route?.isShared == false)
    #expect(server.connections == 2)
    await bench.end()
  }
}

/// A source of legs whose look-ups get no answer, so that a look-up ends only when it is cancelled.
private struct SilentAnswers: LegSource {
  /// The host of each look-up that has ended.
  let cancelled = EventRecorder<String>()

  func legs(for origin: Origin, fresh: Bool) async throws(NetOptError) -> [RoutePlan.Leg] {
    let resolver = StubResolver([origin.host: .silence])
    defer { cancelled.record(origin.host) }
    _ = try await resolver.resolve(origin.host, fresh: fresh)
    return []
  }
}
