import NetOptCore
import Testing

@testable import NetOptRouting

/// How calls and probes change the planner's ranking, circuit breakers and quarantines.
@Suite struct RoutePlannerLearningTests {
  private let one = ip("192.0.2.1")
  private let two = ip("192.0.2.2")
  private let three = ip("192.0.2.3")

  /// A new scene with a measurement of each endpoint: 20 ms, 40 ms and 60 ms.
  private var scene: Scene {
    var scene = Scene([one, two, three])
    for (address, time) in [(one, 20.0), (two, 40), (three, 60)] {
      scene.probe(address, milliseconds: time)
    }
    return scene
  }

  // MARK: Successes

  @Test("connections of calls are time samples that rank endpoints")
  func connectionSamples() {
    var scene = Scene([one, two])
    scene.call(scene.plan(), [.ready(one, milliseconds: 90)])
    scene.call(scene.plan(), [.ready(two, milliseconds: 30)])
    #expect(scene.order() == [two, one])
    #expect(scene.plan().candidates.map(\.score) == [.milliseconds(30), .milliseconds(90)])
  }

  @Test("the sample of a leg counts from the leg's own start, also when the leg lost")
  func legSamples() {
    var scene = Scene([one, two])
    let plan = scene.plan()
    scene.call(plan, [.ready(one, .lost, milliseconds: 300), .ready(two, from: 250, milliseconds: 20)])
    #expect(scene.plan().candidates.map(\.score) == [.milliseconds(20), .milliseconds(300)])
  }

  @Test("a pooled connection is no time sample, and ends the penalty of its endpoint")
  func pooledConnection() {
    var scene = scene
    let plan = scene.plan()
    var leg = RouteReport.Leg.ready(one, milliseconds: 500)
    leg.reused = true
    scene.call(plan, [leg])
    #expect(scene.plan().candidates.first?.score == .milliseconds(20))
    scene.probe(one, fails: .refused)
    #expect(scene.order() == [two, three, one])
    scene.call(plan, [leg])
    #expect(scene.order() == [one, two, three])
  }

  @Test("the first endpoint stays first until another one is clearly faster")
  func leaderStays() {
    var scene = scene
    #expect(scene.order().first == one)
    for _ in 0..<30 { scene.probe(two, milliseconds: 17) }
    #expect(scene.order().first == one)
    for _ in 0..<30 { scene.probe(two, milliseconds: 12) }
    #expect(scene.order().first == two)
    for _ in 0..<30 { scene.probe(two, milliseconds: 24) }
    #expect(scene.order().first == two)
  }

  @Test("a TCP-only probe is a sample, and ends neither an open circuit breaker nor a quarantine")
  func tcpProbe() {
    var scene = Scene([one, two])
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    scene.probe(two, fails: .wrongName)
    for address in [one, two] {
      scene.planner.record(
        probe: .success(ConnectReport(connect: .milliseconds(10))), of: address, for: scene.origin,
        at: scene.now)
    }
    #expect(scene.state(one) == .open)
    #expect(scene.state(two) == .quarantined)
    #expect(
      scene.planner.status(of: scene.origin, at: scene.now).map(\.rtt) == [
        .milliseconds(10), .milliseconds(10),
      ])
  }

  // MARK: Failures

  @Test("a failed endpoint comes last for 5 s, with 10 s added to its score")
  func failurePenalty() {
    var scene = scene
    scene.call(scene.plan(), [.failed(one, .refused), .ready(two, milliseconds: 40)])
    let plan = scene.plan()
    #expect(plan.addresses == [two, three, one])
    #expect(plan.candidates.last?.score == .milliseconds(10_020))
    scene.wait(5)
    #expect(scene.order() == [one, two, three])
  }

  @Test("three failures in a row open the circuit breaker, and the endpoint is tried after DNS")
  func threeFailures() {
    var scene = scene
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    let plan = scene.plan()
    #expect(plan.addresses == [two, three])
    #expect(plan.lastResorts == [one])
    #expect(plan.exclusion(of: one) == .failures(inARow: 3, last: .refused))
    #expect(scene.state(one) == .open)
  }

  @Test("a leg that used up its stagger and lost to a later leg counts as a connect or TLS timeout")
  func overtakenLeg() {
    var scene = Scene([one, two])
    scene.call(scene.plan(), [.cancelled(one, until: 280), .ready(two, from: 250, milliseconds: 30)])
    #expect(scene.order() == [two, one])
    let status = scene.planner.status(of: scene.origin, at: scene.now)
    #expect(status.last?.lastFailure?.kind == .connectTimeout)
    #expect(status.last?.score == .seconds(10))
    scene.call(
      scene.plan(), [.cancelled(two, until: 400, connected: 5), .ready(one, from: 250, milliseconds: 30)])
    #expect(
      scene.planner.status(of: scene.origin, at: scene.now).last?.lastFailure?.kind == .tlsTimeout)
  }

  @Test("an unresponsive endpoint costs its stagger three times, until its circuit breaker opens")
  func blackHole() {
    var scene = scene
    var staggers = 0
    for _ in 0..<100 {
      let plan = scene.plan()
      if plan.addresses.first == one {
        staggers += 1
        scene.call(plan, [.cancelled(one, until: 100), .ready(two, from: 60, milliseconds: 40)])
      } else {
        scene.call(plan, [.ready(two, milliseconds: 40)])
      }
      scene.wait(0.15)
    }
    // In 15 s, the endpoint leads at 0, 5 and 10 s. Then its circuit breaker is open.
    #expect(staggers == 3)
    #expect(scene.state(one) == .open)
  }

  @Test(
    "a cancelled leg counts as failed only after its stagger, when a later leg won",
    arguments: [
      // When the cancelled leg ended, when the winner started (both in ms), and whether the leg failed.
      (280.0, 250.0, true), (240, 200, false), (280, 0, false),
    ])
  func cancelledLeg(_ ended: Double, _ winnerStarted: Double, _ fails: Bool) {
    var scene = Scene([one, two])
    let winner = RouteReport.Leg.ready(two, from: winnerStarted, milliseconds: ended - winnerStarted)
    scene.call(scene.plan(), [.cancelled(one, until: ended), winner])
    #expect(
      (scene.planner.status(of: scene.origin, at: scene.now).first { $0.endpoint.address == one }?.lastFailure
        != nil) == fails)
  }

  @Test("a cancelled call or probe changes no endpoint's status")
  func cancelledCall() {
    var scene = scene
    let before = scene.planner.status(of: scene.origin, at: scene.now)
    scene.call(scene.plan(), [.cancelled(one, until: 9000), .cancelled(two, from: 60, until: 9000)])
    #expect(scene.planner.status(of: scene.origin, at: scene.now) == before)
    scene.planner.record(
      probe: .failure(LegError(.refused, isInconclusive: true)), of: one, for: scene.origin, at: scene.now)
    #expect(scene.planner.status(of: scene.origin, at: scene.now) == before)
  }

  @Test("failures without a route to the host open no circuit breaker")
  func unreachableNetwork() {
    var scene = scene
    for _ in 0..<10 {
      scene.call(scene.plan(), [one, two, three].map { .failed($0, .unreachable) })
    }
    let plan = scene.plan()
    #expect(Set(plan.addresses) == [one, two, three])
    #expect(plan.noneUsable == nil)
  }

  @Test("failures of calls through a proxy do not count against endpoints")
  func proxyFailures() {
    var scene = scene
    let plan = scene.planner.plan(for: scene.origin, proxy: "http://127.0.0.1:1", now: scene.now, wall: today)
    for _ in 0..<3 { scene.call(plan, [.failed(one, .refused, source: .dns)]) }
    #expect(scene.state(one) == .closed)
  }

  // MARK: Open circuits

  @Test("with all circuit breakers open, the endpoint with the oldest failure and DNS start together")
  func allCircuitsOpen() {
    var scene = scene
    for address in [two, one, three] {
      for _ in 0..<3 { scene.probe(address, fails: .refused) }
      scene.wait(0.1)
    }
    let plan = scene.plan()
    #expect(plan.addresses == [two])
    #expect(plan.endsInDNS)
    #expect(plan.lastResorts == [one, three])
    #expect(plan.startsTwo)
    #expect(plan.noneUsable == .circuitsOpen)
    #expect(plan.exclusion(of: two) == nil)
    #expect(plan.exclusion(of: one) != nil)
    #expect(plan.exclusion(of: three) != nil)
    #expect(plan.candidates.count == 3)
  }

  @Test("a half-open endpoint leads one plan, and other plans exclude it until the result is known")
  func halfOpenLeader() {
    var scene = scene
    #expect(scene.order() == [one, two, three])
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    #expect(scene.order() == [two, three])
    scene.wait(6.1)
    #expect(scene.state(one) == .halfOpen)
    let attempt = scene.plan()
    #expect(attempt.addresses == [one, two, three])
    let beside = scene.plan()
    #expect(beside.addresses == [two, three])
    #expect(beside.exclusion(of: one) == .attemptUnderWay)
    // The attempt fails: the circuit breaker stays open for twice as long.
    scene.call(attempt, [.failed(one, .refused), .ready(two, milliseconds: 40)])
    #expect(scene.state(one) == .open)
    scene.wait(7.9)
    #expect(scene.state(one) == .open)
    scene.wait(4.2)
    let second = scene.plan()
    #expect(second.addresses == [one, two, three])
    // The attempt succeeds: the circuit breaker closes, and the order is as before.
    scene.call(second, [.ready(one, milliseconds: 20)])
    #expect(scene.order() == [one, two, three])
    #expect(scene.state(one) == .closed)
  }

  @Test("a half-open endpoint gets another attempt after an unused one, or after 30 s without a report")
  func unusedAttempt() {
    var scene = scene
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    scene.wait(6.1)
    let attempt = scene.plan()
    #expect(attempt.addresses.first == one)
    scene.call(attempt, [])
    #expect(scene.order().first == one)
    // The plan above took another attempt, for which no report comes. After 30 s, a plan takes one more.
    #expect(scene.order().first == two)
    scene.wait(29)
    #expect(scene.order().first == two)
    scene.wait(1)
    #expect(scene.order().first == one)
  }

  /// A half-open endpoint that does not rank first is rarely tried. So plans contain it without taking its
  /// one attempt.
  @Test("a slow half-open endpoint is the last address of every plan")
  func slowHalfOpen() {
    var scene = scene
    for _ in 0..<3 { scene.probe(three, fails: .refused) }
    #expect(scene.order() == [one, two])
    scene.wait(6.1)
    #expect(scene.order() == [one, two, three])
    #expect(scene.order() == [one, two, three])
    #expect(scene.state(three) == .halfOpen)
  }

  @Test("during the attempt of the only endpoint, other plans start it and DNS together")
  func onlyHalfOpenEndpoint() {
    var scene = Scene([one])
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    scene.wait(6.1)
    let attempt = scene.plan()
    #expect(attempt.noneUsable == nil)
    #expect(!attempt.startsTwo)
    let beside = scene.plan()
    #expect(beside.addresses == [one])
    #expect(beside.startsTwo)
    #expect(beside.noneUsable == .circuitsOpen)
  }

  // MARK: Quarantine

  @Test("plans exclude an endpoint with a wrong certificate until a probe verifies the right one")
  func wrongCertificate() {
    var scene = scene
    scene.call(scene.plan(), [.failed(one, .wrongName), .ready(two, milliseconds: 40)])
    let plan = scene.plan()
    #expect(plan.addresses == [two, three])
    // The check is due after 1 to 1.2 s. The reason has whole seconds, rounded up.
    #expect(plan.exclusion(of: one) == .wrongName(nextCheck: .seconds(2)))
    scene.wait(0.9)
    #expect(scene.state(one) == .quarantined)
    scene.probe(one, milliseconds: 20)
    #expect(scene.order() == [one, two, three])
  }

  @Test("a plan uses DNS alone when all endpoints are in quarantine")
  func allQuarantined() {
    var scene = Scene([one, two])
    for address in [one, two] { scene.probe(address, fails: .wrongName) }
    let plan = scene.plan()
    #expect(plan.legs == [RoutePlan.Leg(.dns, source: .dns)])
    #expect(plan.noneUsable == .excluded)
    #expect(plan.candidates.allSatisfy { $0.excluded != nil })
    #expect(!plan.startsTwo)
  }

  @Test("a plan tries an open circuit breaker's endpoint when the only other one is in quarantine")
  func quarantineAndOpenCircuit() {
    var scene = Scene([one, two])
    scene.probe(one, fails: .wrongName)
    scene.wait(1)
    for _ in 0..<3 { scene.probe(two, fails: .refused) }
    let plan = scene.plan()
    #expect(plan.addresses == [two])
    #expect(plan.noneUsable == .circuitsOpen)
  }

  @Test("unverified requests use a quarantined endpoint, and make no certificate check")
  func unverifiedRequests() {
    var scene = scene
    scene.probe(one, fails: .wrongName)
    scene.wait(10)
    var options = RequestOptions()
    options.verification = .none
    for _ in 0..<5 {
      let plan = scene.plan(options)
      #expect(plan.addresses == [one, two, three] && !plan.verifies)
      scene.call(plan, [.ready(one, milliseconds: 20)])
    }
    // The first plan that verifies makes the certificate check. The next one excludes the endpoint.
    #expect(scene.state(one) == .halfOpen)
    #expect(scene.order() == [one, two, three])
    #expect(scene.order() == [two, three])
    #expect(scene.plan(options).addresses == [one, two, three])
  }

  @Test("a pooled connection does not end a quarantine")
  func pooledCertificate() {
    var scene = scene
    scene.probe(one, fails: .wrongName)
    scene.planner.record(
      probe: .success(ConnectReport(connect: .zero, tls: nil, reused: true)), of: one, for: scene.origin,
      at: scene.now)
    #expect(scene.state(one) == .quarantined)
    var leg = RouteReport.Leg.ready(one, milliseconds: 20)
    leg.reused = true
    scene.call(scene.plan(), [leg])
    #expect(scene.state(one) == .quarantined)
  }

  // MARK: DNS

  @Test("DNS addresses keep their order, but the last winner comes first, open circuit breakers last")
  func orderOfDNSAddresses() {
    var planner = RoutePlanner(list: nil, seed: 1)
    let origin = Origin(.https, host: "b.example")
    let answers = (1...5).map { ip("198.51.100.\($0)") }
    func order() -> [IPAddress] { planner.ordered(answers, for: origin, at: .at(0)).map(\.address) }
    #expect(order() == answers)
    #expect(planner.ordered(answers, for: origin, at: .at(0)).allSatisfy { $0.stagger == .milliseconds(250) })
    let plan = planner.plan(for: origin, now: .at(0), wall: today)
    let legs = [
      RouteReport.Leg.failed(answers[0], .refused, source: .dns),
      .ready(answers[3], milliseconds: 20, source: .dns),
    ]
    planner.record(RouteReport(plan: plan, legs: legs), at: .at(0))
    #expect(order() == [answers[3], answers[0], answers[1], answers[2], answers[4]])
    #expect(planner.ordered(answers, for: origin, at: .at(0)).first?.stagger == .milliseconds(60))
    for _ in 0..<2 { planner.record(RouteReport(plan: plan, legs: legs), at: .at(0)) }
    #expect(order() == [answers[3], answers[1], answers[2], answers[4], answers[0]])
    #expect(planner.ordered([], for: origin, at: .at(0)).isEmpty)
    #expect(
      planner.ordered(answers, for: origin, at: .at(10)).map(\.address).prefix(2) == [answers[3], answers[0]])
  }

  @Test("a DNS address that is also listed shares the health of the listed endpoint")
  func listedDNSAddress() {
    var scene = scene
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    #expect(
      scene.planner.ordered([one, two], for: scene.origin, at: scene.now).map(\.address) == [two, one])
    scene.call(scene.plan(), [.ready(one, milliseconds: 20, source: .dns)])
    #expect(scene.state(one) == .closed)
    #expect(
      scene.planner.ordered([two, one], for: scene.origin, at: scene.now).map(\.address) == [one, two])
  }

  @Test("an origin remembers the health of its 64 latest DNS addresses")
  func rememberedAddresses() {
    var routes = HostRoutes(Origin(.https, host: "b.example"), listed: [], configuration: .init(), seed: 1)
    for number in 0..<500 {
      routes.update(IPAddress(v4: 0xc633_6400 + UInt32(number)), at: .at(Double(number))) {
        $0.succeeded(connect: nil, ready: .milliseconds(10), at: .at(Double(number)))
      }
    }
    let known = (0..<500).filter { routes.health(of: IPAddress(v4: 0xc633_6400 + UInt32($0))) != nil }
    #expect(known == Array(436..<500))
  }

  @Test("the planner remembers a limited number of unlisted origins, and keeps the listed ones")
  func rememberedOrigins() {
    var scene = scene
    for number in 0..<5000 {
      let origin = Origin(.https, host: "h\(number).example")
      scene.planner.learned(version: .http1_1, for: origin, options: RequestOptions())
    }
    // Plans for a remembered origin do not multiplex, because it speaks HTTP/1.1.
    let remembered = (0..<5000).count { number in
      let origin = Origin(.https, host: "h\(number).example")
      return !scene.planner.plan(for: origin, now: scene.now, wall: today).multiplexes
    }
    #expect((1...RoutePlanner.mostUnlisted).contains(remembered))
    #expect(scene.plan().candidates.first?.score == .milliseconds(20))
  }

  /// A list may have 10,000 endpoints, and all of them fail when this machine's network fails. The planner
  /// then undoes the effects of all these failures in one pass. This must be much faster than recording the
  /// failures, which takes a pass for each of them.
  @Test("undoing the failures of 1,000 endpoints takes less than 1/20 of the time of recording them")
  func quickUndo() throws {
    let addresses = (0..<1000).map { IPAddress(v4: 0x0a00_0001 + UInt32($0)) }
    let clock = ContinuousClock()
    var routes = HostRoutes(
      Origin(.https, host: "a.example"), listed: addresses.map { ListedEndpoint($0) },
      configuration: RoutingConfiguration(), seed: 1)
    var random = SplitMix64(seed: 1)
    let start = MonotonicInstant.at(0)
    for (index, address) in addresses.enumerated() {
      let report = ConnectReport(connect: .milliseconds(index % 97 + 1), tls: .milliseconds(5))
      routes.record(probe: .success(report), of: address, isFrozen: false, at: start, using: &random)
    }
    let before = routes.ranking.entries
    let failed = start + .seconds(1)
    let recording = clock.measure {
      for address in addresses {
        for _ in 0..<3 {
          let failure = LegError(LegFailure(.connectTimeout, "it did not answer"))
          routes.record(probe: .failure(failure), of: address, isFrozen: false, at: failed, using: &random)
        }
      }
    }
    #expect(routes.ranking.entries.isEmpty && routes.excluded.count == addresses.count)
    let undoing = clock.measure { routes.undoFailures(since: start, at: failed) }
    #expect(routes.ranking.entries == before && routes.excluded.isEmpty)
    #expect(undoing < recording / 20, "\(undoing), and \(recording) to hold it against them")
  }
}
