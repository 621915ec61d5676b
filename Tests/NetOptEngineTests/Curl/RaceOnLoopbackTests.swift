import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Races between real endpoints. The first ones are bad in some way; the last one is nginx.
@Suite struct RaceOnLoopbackTests {
  /// Addresses of which the last one answers, and what makes the others bad.
  private struct Field {
    let addresses: [IPAddress]
    let origin: NginxOrigin
    let others: [LoopbackServer]

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

  @Test func aRefusedEndpointCostsNothing() async throws {
    let field = try await Field([nil, nil])
    defer { field.stop() }
    let bench = try await TransportBench()
    let response = try await bench.execute(try NetOptRequest(.get, field.url), field.addresses)
    #expect(response.remote?.address == field.addresses[2])
    #expect(response.route.legs.map(\.outcome) == [.failed, .failed, .won])
    #expect(response.route.legs.prefix(2).allSatisfy { $0.failure?.kind == .refused })
    // Less than the stagger of a single leg: nobody waited for it.
    #expect(response.timings.timeToFirstByte < .milliseconds(250))
    await bench.end()
  }

  @Test(arguments: [LoopbackServer.Behaviour.blackHole, .silent])
  func aSilentEndpointCostsItsStagger(_ behaviour: LoopbackServer.Behaviour) async throws {
    let field = try await Field([behaviour])
    defer { field.stop() }
    let bench = try await TransportBench()
    let response = try await bench.execute(try NetOptRequest(.get, field.url), field.addresses)
    #expect(response.remote?.address == field.addresses[1])
    #expect(response.route.legs.map(\.outcome) == [.cancelled, .won])
    let waited = response.route.legs[1].started
    // 250 ms without history; once more when TCP was connected and TLS is under way.
    let isTLSUnderWay = if case .silent = behaviour { true } else { false }
    #expect(waited >= .milliseconds(isTLSUnderWay ? 500 : 250))
    #expect((response.route.legs[0].connected != nil) == isTLSUnderWay)
    // The next request does not wait again: the connection that is there wins.
    let second = try await bench.execute(
      try NetOptRequest(.get, field.url), Array(field.addresses.reversed()))
    #expect(second.reused)
    #expect(second.route.legs.count == 1)
    await bench.end()
  }

  @Test func onlyALegWhoseOwnTCPIsConnectedIsGivenLonger() async throws {
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

  @Test func aPostReachesOneServerOnce() async throws {
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
        // A ClientHello at most: nobody saw the request.
        #expect(!String(decoding: bytes, as: UTF8.self).contains("once"))
      }
    }
    await bench.end()
  }

  @Test func dnsIsTheLastLeg() async throws {
    let field = try await Field([nil, .blackHole])
    defer { field.stop() }
    let bench = try await TransportBench(answers: [field.addresses[0], field.addresses[2]])
    let response = try await bench.execute(
      try NetOptRequest(.get, field.url), Array(field.addresses[..<2]), dns: true)
    #expect(response.route.source == .dns)
    #expect(response.route.fallback == .noAnswerInTime)
    // The answer that had failed from the list is not tried again.
    #expect(response.route.legs.map(\.address) == field.addresses)
    await bench.end()
  }

  @Test(arguments: [LoopbackServer.Behaviour.blackHole, .silent])
  func dnsDoesNotWaitForALongListOfSilentAddresses(_ behaviour: LoopbackServer.Behaviour) async throws {
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

  @Test func anAnswerThatTheListHasDoesNotWaitForItsTurn() async throws {
    let field = try await Field([LoopbackServer.Behaviour?](repeating: .blackHole, count: 6))
    defer { field.stop() }
    // The last address of the list is the one that DNS gives.
    let bench = try await TransportBench(answers: [field.addresses[6]])
    let response = try await bench.execute(try NetOptRequest(.get, field.url), field.addresses, dns: true)
    #expect(response.remote?.address == field.addresses[6])
    #expect(response.route.source == .dns)
    #expect(response.route.legs.count { $0.address == field.addresses[6] } == 1)
    #expect(response.timings.timeToFirstByte < .milliseconds(1500))
    await bench.end()
  }

  @Test func aLookUpThatIsNotWaitedForEndsWithTheCall() async throws {
    let field = try await Field([.blackHole, .blackHole, .blackHole])
    defer { field.stop() }
    let look = SilentAnswers()
    let bench = try await TransportBench(legs: look)
    // Three of the list are silent, so the look-up starts; the fourth is started by the first one's end.
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

  @Test func whenAllLegsFailTheErrorHasThemAll() async throws {
    let addresses = IPAddress.freshLoopback(3)
    let port = try FreePort.find(on: addresses)
    let bench = try await TransportBench(answers: [addresses[2]])
    let request = try NetOptRequest(.get, "https://api.test:\(port)/")
    let error = await failure { () throws(NetOptError) in
      _ = try await bench.execute(request, Array(addresses[..<2]), dns: true)
    }
    #expect(error?.code == .connectFailed)
    #expect(error?.isRetryable == true)
    // They failed in the same way, so the order is that of their names.
    let endpoints = addresses.map { IPEndpoint($0, port: port) }.sorted { "\($0)" < "\($1)" }
    #expect(error?.endpoint == endpoints[0])
    #expect(
      error?.message
        == "\(endpoints[0]) refused the connection; besides, 2 other addresses refused the connection")
    #expect(error?.route?.legs.map(\.address) == addresses)
    #expect(error?.route?.fallback == .allFailed)
    await bench.end()
  }

  @Test func callsWaitForTheRaceThatIsUnderWay() async throws {
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
    // One of them ran the race; the others went straight to the winner, on its connection.
    #expect(responses.count { $0.route.legs.count == 2 } == 1)
    #expect(responses.count { $0.reused } == 19)
    #expect(Set(try await field.origin.waitForLog(20).map(\.connection)).count == 1)
    await bench.end()
  }

  @Test func anEndpointThatWonIsNotTriedByAPlanThatLeavesItOut() async throws {
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

  @Test func aConnectionToWhatTheListHadIsNoAnswerOfDNS() async throws {
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
    // From then on there is a connection to the answer, and nothing is looked up.
    let again = try await bench.execute(request, [], dns: true)
    #expect(again.remote?.address == addresses[1])
    #expect(again.reused)
    await bench.end()
  }

  @Test func callsThatWaitShareTheFailure() async throws {
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
    // It is one failure, and counts once.
    #expect(errors.count { $0?.route?.isShared == false } == 1)
    await bench.end()
  }

  @Test func whoHasMorePatienceDoesNotShareTheFailure() async throws {
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

/// A name system that gives no answer.
private struct SilentAnswers: LegSource {
  let cancelled = EventRecorder<String>()

  func legs(for origin: Origin, fresh: Bool) async throws(NetOptError) -> [RoutePlan.Leg] {
    let resolver = StubResolver([origin.host: .silence])
    defer { cancelled.record(origin.host) }
    _ = try await resolver.resolve(origin.host, fresh: fresh)
    return []
  }
}
