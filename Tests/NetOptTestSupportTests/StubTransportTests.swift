import NetOptCore
import NetOptTestSupport
import Testing

@Suite struct StubTransportTests {
  private let origin = Origin(.https, host: "a.example")
  private let addresses = (1...4).map { IPAddress(v4: 0xc000_0200 + $0) }
  /// The clock of the transport and of the calls. It moves only when a test advances it.
  private let clock = ManualTimeSource()

  private func plan(_ legs: [RoutePlan.Leg], proxy: String? = nil, multiplexes: Bool = true) -> RoutePlan {
    RoutePlan(origin: origin, proxy: proxy, policy: .fastest, legs: legs, multiplexes: multiplexes)
  }

  /// Makes a plan with one leg for each address, in order.
  private func plan(_ addresses: IPAddress..., multiplexes: Bool = true) -> RoutePlan {
    plan(addresses.map { RoutePlan.Leg(.address($0), source: .list) }, multiplexes: multiplexes)
  }

  /// Starts a call, and returns the task that performs it.
  ///
  /// - Parameters:
  ///   - deadline: the time from now until the deadline of the call; `nil` for no deadline.
  ///   - change: changes the request, which is otherwise a GET.
  private func start(
    _ transport: StubTransport, _ plan: RoutePlan, deadline: Duration? = nil,
    _ change: (inout NetOptRequest) -> Void = { _ in }
  ) throws -> Task<Result<NetOptResponse, NetOptError>, Never> {
    var request = try NetOptRequest(.get, "https://a.example/")
    change(&request)
    let now = clock.now()
    let context = CallContext(id: 1, started: now, deadline: deadline.map { now + $0 })
    return Task { [request] in
      do throws(NetOptError) {
        return .success(try await transport.execute(request, along: plan, in: context))
      } catch {
        return .failure(error)
      }
    }
  }

  @Test("a silent leg delays the next leg by its stagger on the manual clock") func silentLeg() async throws {
    let transport = StubTransport(
      [addresses[0]: .silent, addresses[1]: .respond(204, fields: ["X-A": "b"])], timeSource: clock)
    let call = try start(transport, plan(addresses[0], addresses[1]))
    // Two timers run: the time limit of the first leg, and its stagger.
    try await wait(for: "the timers") { clock.sleepers == 2 }
    #expect(transport.opened == [addresses[0]])
    clock.advance(by: .milliseconds(250))
    let response = try await call.value.get()
    #expect(response.status == 204)
    #expect(response.headers["x-a"] == "b")
    #expect(transport.opened == [addresses[0], addresses[1]])
    #expect(response.route.legs.map(\.started) == [.zero, .milliseconds(250)])
    #expect(response.route.legs.map(\.outcome) == [.cancelled, .won])
    #expect(response.timings.queue == .milliseconds(250))
  }

  @Test("a leg in the TLS handshake delays the next leg by twice its stagger")
  func silentTLSLeg() async throws {
    let transport = StubTransport([addresses[0]: .silentTLS, addresses[1]: .respond()], timeSource: clock)
    let call = try start(transport, plan(addresses[0], addresses[1]))
    for _ in 0..<2 {
      try await wait(for: "the timers") { clock.sleepers == 2 }
      clock.advance(by: .milliseconds(250))
    }
    let response = try await call.value.get()
    #expect(response.route.legs.map(\.started) == [.zero, .milliseconds(500)])
    #expect(response.route.legs[0].connected == .zero)
    #expect(response.route.legs[0].secured == nil)
  }

  @Test("a look-up after 1 s leaves the leg in front its whole stagger")
  func lookUpKeepsStagger() async throws {
    let transport = StubTransport(
      [addresses[0]: .silentTLS, addresses[1]: .respond()], resolver: StubResolver(["a.example": .silence]),
      timeSource: clock)
    let stagger = Duration.milliseconds(1500)
    let listed = addresses[..<2].map { RoutePlan.Leg(.address($0), source: .list, stagger: stagger) }
    let call = try start(transport, plan(listed + [RoutePlan.Leg(.dns, source: .dns)]))
    // Two timers run at each step. One is always the time limit of the first leg. The other is first the
    // delay of the look-up (1 s), then the stagger (until 1.5 s), then the extension of the stagger (250 ms).
    for step in [1000, 500, 250] {
      try await wait(for: "the timers") { clock.sleepers == 2 }
      clock.advance(by: .milliseconds(step))
    }
    let response = try await call.value.get()
    #expect(response.remote?.address == addresses[1])
    #expect(response.route.legs.map(\.address) == [addresses[0], nil, addresses[1]])
    #expect(response.route.legs.map(\.started) == [.zero, .seconds(1), .milliseconds(1750)])
  }

  @Test("an address from DNS that is also in the list is tried next")
  func resolvedListedAddress() async throws {
    let transport = StubTransport(
      [addresses[0]: .silent, addresses[2]: .respond()], resolver: StubResolver("a.example", [addresses[2]]),
      timeSource: clock)
    let stagger = Duration.seconds(5)
    let listed = addresses[..<3].map { RoutePlan.Leg(.address($0), source: .list, stagger: stagger) }
    let call = try start(transport, plan(listed + [RoutePlan.Leg(.dns, source: .dns)]))
    try await wait(for: "the timers") { clock.sleepers == 2 }
    clock.advance(by: .seconds(1))
    let response = try await call.value.get()
    #expect(response.route.source == .dns)
    #expect(response.route.legs.map(\.address) == [addresses[0], addresses[2]])
  }

  @Test("the timings of a call follow the script and the manual clock") func timings() async throws {
    let outcome = StubOutcome.respond(body: [1, 2]).taking(
      connect: .milliseconds(10), tls: .milliseconds(20), answer: .milliseconds(30))
    let transport = StubTransport([addresses[0]: outcome], timeSource: clock)
    let call = try start(transport, plan(addresses[0]))
    // Two timers run at each step: the step of the script (connect, TLS, answer), and the leg's stagger of
    // 250 ms. The stagger's timer goes on although the leg has won.
    for (sleepers, step) in [(2, 10), (2, 20), (2, 30)] {
      try await wait(for: "the timers") { clock.sleepers == sleepers }
      clock.advance(by: .milliseconds(step))
    }
    let response = try await call.value.get()
    #expect(response.timings.connect == .milliseconds(10))
    #expect(response.timings.tls == .milliseconds(20))
    #expect(response.timings.wait == .milliseconds(30))
    clock.advance(by: .milliseconds(5))
    #expect(response.timings.transfer == .milliseconds(5))
    #expect(try await response.body.collect(upTo: 10) == [1, 2])
    clock.advance(by: .milliseconds(5))
    #expect(response.timings.total == .milliseconds(65))
  }

  @Test("a losing connection that gets ready before the response is pooled")
  func loserIsPooled() async throws {
    let transport = StubTransport(
      [
        addresses[0]: .respond().taking(connect: .milliseconds(300)),
        addresses[1]: .respond().taking(answer: .milliseconds(100)),
      ], timeSource: clock)
    let call = try start(transport, plan(addresses[0], addresses[1]))
    try await wait(for: "the timers") { clock.sleepers == 2 }
    clock.advance(by: .milliseconds(250))
    // Three timers run: the first leg's handshake, the time until the response, and the second leg's stagger.
    try await wait(for: "the request") { transport.received.count == 1 && clock.sleepers == 3 }
    clock.advance(by: .milliseconds(50))
    try await wait(for: "the loser") { transport.pooled == 2 }
    clock.advance(by: .milliseconds(50))
    let response = try await call.value.get()
    #expect(response.remote?.address == addresses[1])
    #expect(response.route.legs.map(\.outcome) == [.lost, .won])
    let next = try await start(transport, plan(addresses[0])).value.get()
    #expect(next.reused)
  }

  @Test("changing the behaviour of an address closes its connections")
  func changeClosesConnections() async throws {
    let transport = StubTransport([addresses[0]: .respond()], timeSource: clock)
    #expect(try await !start(transport, plan(addresses[0])).value.get().reused)
    #expect(try await start(transport, plan(addresses[0])).value.get().reused)
    transport.set(.refuse, for: addresses[0])
    guard case .failure(let error) = try await start(transport, plan(addresses[0])).value else {
      Issue.record("the address still answers")
      return
    }
    #expect(error.code == .connectFailed)
  }

  @Test func freshConnectionsAreNotPooled() async throws {
    let transport = StubTransport([addresses[0]: .respond()], timeSource: clock)
    for _ in 0..<2 {
      let response = try await start(transport, plan(addresses[0])) { $0.options.connection = .fresh }.value
        .get()
      #expect(!response.reused)
    }
    #expect(transport.opened.count == 2)
  }

  @Test("a leg to a proxy has no address") func proxyLeg() async throws {
    let url = "http://proxy.example:3128"
    let transport = StubTransport(proxies: [url: .respond(207)], timeSource: clock)
    let response = try await start(transport, plan([RoutePlan.Leg(.proxy, source: .dns)], proxy: url)).value
      .get()
    #expect(response.status == 207)
    #expect(response.remote == nil)
    #expect(transport.received.map(\.address) == [nil])
  }

  @Test("the transport skips resolved addresses of the other family") func addressFamily() async throws {
    let six = try #require(IPAddress("2001:db8::1"))
    let transport = StubTransport(
      [six: .respond(), addresses[0]: .respond()], resolver: StubResolver("a.example", [addresses[0], six]),
      timeSource: clock)
    let response = try await start(transport, plan([RoutePlan.Leg(.dns, source: .dns)])) {
      $0.options.family = .v6
    }.value.get()
    #expect(response.remote?.address == six)
    #expect(response.route.legs.count == 1)
  }

  @Test("a failed look-up fails the call, and the report shows its leg") func failedLookUp() async throws {
    let resolver = StubResolver(["a.example": .failure])
    let transport = StubTransport(resolver: resolver, timeSource: clock)
    let call = try start(transport, plan([RoutePlan.Leg(.dns, source: .dns)]))
    guard case .failure(let error) = await call.value else {
      Issue.record("the look-up has to fail")
      return
    }
    #expect(error.code == .resolverFailed)
    #expect(error.route?.legs.map(\.failure?.kind) == [.resolve])
    #expect(resolver.lookups == [.init("a.example")])
  }

  @Test func recordsRequestsWithTheirBodies() async throws {
    let transport = StubTransport([addresses[0]: .respond()], timeSource: clock)
    _ = try await start(transport, plan(addresses[0])) {
      $0.method = .post
      $0.body = .text("body")
    }.value.get()
    #expect(transport.received.map(\.body) == [Array("body".utf8)])
    #expect(transport.received.map(\.request.method) == [.post])
    #expect(transport.received.map(\.address) == [addresses[0]])
  }

  @Test("body chunks are made only on demand") func chunksOnDemand() async throws {
    let made = EventRecorder<Int>()
    let outcome = StubOutcome.answer { _, _ in
      .response(
        StubResponse { index in
          made.record(index)
          return index < 3 ? [UInt8(index)] : nil
        })
    }
    let transport = StubTransport([addresses[0]: outcome], timeSource: clock)
    var response: NetOptResponse? = try await start(transport, plan(addresses[0])).value.get()
    var iterator = try #require(response?.body.makeAsyncIterator())
    #expect(made.events.isEmpty)
    #expect(try await iterator.next() == [0])
    #expect(made.events == [0])
    #expect(transport.openBodies == 1)
    while try await iterator.next() != nil {}
    #expect(made.events == [0, 1, 2, 3])
    #expect(transport.openBodies == 0)
    response = nil
  }

  @Test("a body ends when its response is released") func releasedBody() async throws {
    let transport = StubTransport([addresses[0]: .respond(body: [1])], timeSource: clock)
    do {
      let response = try await start(transport, plan(addresses[0])).value.get()
      #expect(response.status == 200)
      #expect(transport.openBodies == 1)
    }
    // The task of the call still has the response for a moment after it has returned it.
    try await wait(for: "the body to be over") { transport.openBodies == 0 }
  }

  @Test("the deadline of a call follows the manual clock") func deadline() async throws {
    let transport = StubTransport([addresses[0]: .noAnswer], timeSource: clock)
    let call = try start(transport, plan(addresses[0]), deadline: .seconds(3))
    try await wait(for: "the request") { transport.received.count == 1 }
    clock.advance(by: .seconds(3))
    guard case .failure(let error) = await call.value else {
      Issue.record("the call has to fail")
      return
    }
    #expect(error.code == .timeout)
    #expect(error.phase == .receive)
    #expect(error.route?.winner?.address == addresses[0])
  }
}
