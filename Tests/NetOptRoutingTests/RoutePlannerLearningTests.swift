import NetOptCore
import Testing

@testable import NetOptRouting

/// What a planner learns from calls and probes.
@Suite struct RoutePlannerLearningTests {
  private let one = ip("192.0.2.1")
  private let two = ip("192.0.2.2")
  private let three = ip("192.0.2.3")

  /// A scene in which all endpoints are known: 20 ms, 40 ms, 60 ms.
  private var scene: Scene {
    var scene = Scene([one, two, three])
    for (address, time) in [(one, 20.0), (two, 40), (three, 60)] {
      scene.probe(address, milliseconds: time)
    }
    return scene
  }

  // MARK: Successes

  @Test func liveConnectionsAreSamples() {
    var scene = Scene([one, two])
    scene.call(scene.plan(), [.ready(one, milliseconds: 90)])
    scene.call(scene.plan(), [.ready(two, milliseconds: 30)])
    #expect(scene.order() == [two, one])
    #expect(scene.plan().candidates.map(\.score) == [.milliseconds(30), .milliseconds(90)])
  }

  @Test func aLegThatLostIsASampleFromItsOwnStart() {
    var scene = Scene([one, two])
    let plan = scene.plan()
    scene.call(plan, [.ready(one, .lost, milliseconds: 300), .ready(two, from: 250, milliseconds: 20)])
    #expect(scene.plan().candidates.map(\.score) == [.milliseconds(20), .milliseconds(300)])
  }

  @Test func aPooledConnectionIsNoSample() {
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

  @Test func theLeaderStaysUntilAnotherIsClearlyBetter() {
    var scene = scene
    #expect(scene.order().first == one)
    for _ in 0..<30 { scene.probe(two, milliseconds: 17) }
    #expect(scene.order().first == one)
    for _ in 0..<30 { scene.probe(two, milliseconds: 12) }
    #expect(scene.order().first == two)
    for _ in 0..<30 { scene.probe(two, milliseconds: 24) }
    #expect(scene.order().first == two)
  }

  @Test func tcpAloneRanksButHealsNothing() {
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

  @Test func aFailedEndpointComesLastForAWhile() {
    var scene = scene
    scene.call(scene.plan(), [.failed(one, .refused), .ready(two, milliseconds: 40)])
    let plan = scene.plan()
    #expect(plan.addresses == [two, three, one])
    #expect(plan.candidates.last?.score == .milliseconds(10_020))
    scene.wait(5)
    #expect(scene.order() == [one, two, three])
  }

  @Test func threeFailuresOpenTheCircuit() {
    var scene = scene
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    let plan = scene.plan()
    #expect(plan.addresses == [two, three])
    #expect(plan.lastResorts == [one])
    #expect(plan.exclusion(of: one) == .failures(inARow: 3, last: .refused))
    #expect(scene.state(one) == .open)
  }

  @Test func aLegThatUsedUpItsStaggerAndWasOvertakenFailed() {
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

  @Test func aBlackHoleCostsItsStaggerThreeTimesAndNoMore() {
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
    // Over 15 s: at 0, 5 and 10 s, and then the circuit is open.
    #expect(staggers == 3)
    #expect(scene.state(one) == .open)
  }

  @Test(arguments: [
    // Until when the leg was under way, when the winner began, and whether it counts as a failure.
    (280.0, 250.0, true), (240, 200, false), (280, 0, false),
  ])
  func aLegThatHadTimeLeftDidNotFail(_ ended: Double, _ winnerStarted: Double, _ fails: Bool) {
    var scene = Scene([one, two])
    let winner = RouteReport.Leg.ready(two, from: winnerStarted, milliseconds: ended - winnerStarted)
    scene.call(scene.plan(), [.cancelled(one, until: ended), winner])
    #expect(
      (scene.planner.status(of: scene.origin, at: scene.now).first { $0.endpoint.address == one }?.lastFailure
        != nil) == fails)
  }

  @Test func aCallThatItsCallerEndedBlamesNobody() {
    var scene = scene
    let before = scene.planner.status(of: scene.origin, at: scene.now)
    scene.call(scene.plan(), [.cancelled(one, until: 9000), .cancelled(two, from: 60, until: 9000)])
    #expect(scene.planner.status(of: scene.origin, at: scene.now) == before)
    scene.planner.record(
      probe: .failure(LegError(.refused, isCancellation: true)), of: one, for: scene.origin, at: scene.now)
    #expect(scene.planner.status(of: scene.origin, at: scene.now) == before)
  }

  @Test func theLocalNetworkOpensNoCircuit() {
    var scene = scene
    for _ in 0..<10 {
      scene.call(scene.plan(), [one, two, three].map { .failed($0, .unreachable) })
    }
    let plan = scene.plan()
    #expect(Set(plan.addresses) == [one, two, three])
    #expect(plan.withoutList == nil)
  }

  @Test func whatAProxyDoesIsNobodysFault() {
    var scene = scene
    let plan = scene.planner.plan(for: scene.origin, proxy: "http://127.0.0.1:1", now: scene.now, wall: today)
    for _ in 0..<3 { scene.call(plan, [.failed(one, .refused, source: .dns)]) }
    #expect(scene.state(one) == .closed)
  }

  // MARK: Open circuits

  @Test func withEveryCircuitOpenTheOldestFailureAndDNSStartTogether() {
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
    #expect(plan.withoutList == .circuitsOpen)
    #expect(plan.exclusion(of: two) == nil)
    #expect(plan.exclusion(of: one) != nil)
    #expect(plan.exclusion(of: three) != nil)
    #expect(plan.candidates.count == 3)
  }

  @Test func aHalfOpenEndpointLeadsOnePlanAlone() {
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
    // It fails: the circuit is open for twice as long.
    scene.call(attempt, [.failed(one, .refused), .ready(two, milliseconds: 40)])
    #expect(scene.state(one) == .open)
    scene.wait(7.9)
    #expect(scene.state(one) == .open)
    scene.wait(4.2)
    let second = scene.plan()
    #expect(second.addresses == [one, two, three])
    // It succeeds: all is as before.
    scene.call(second, [.ready(one, milliseconds: 20)])
    #expect(scene.order() == [one, two, three])
    #expect(scene.state(one) == .closed)
  }

  @Test func anAttemptThatWasNotMadeIsGivenBack() {
    var scene = scene
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    scene.wait(6.1)
    let attempt = scene.plan()
    #expect(attempt.addresses.first == one)
    scene.call(attempt, [])
    #expect(scene.order().first == one)
    // Nothing is heard of this one: after half a minute another one is made.
    #expect(scene.order().first == two)
    scene.wait(29)
    #expect(scene.order().first == two)
    scene.wait(1)
    #expect(scene.order().first == one)
  }

  @Test func aSlowHalfOpenEndpointStaysInTheBack() {
    var scene = scene
    for _ in 0..<3 { scene.probe(three, fails: .refused) }
    #expect(scene.order() == [one, two])
    scene.wait(6.1)
    #expect(scene.order() == [one, two, three])
    #expect(scene.order() == [one, two, three])
    #expect(scene.state(three) == .halfOpen)
  }

  @Test func aSingleHalfOpenEndpointHasDNSBesideIt() {
    var scene = Scene([one])
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    scene.wait(6.1)
    let attempt = scene.plan()
    #expect(attempt.withoutList == nil)
    #expect(!attempt.startsTwo)
    let beside = scene.plan()
    #expect(beside.addresses == [one])
    #expect(beside.startsTwo)
    #expect(beside.withoutList == .circuitsOpen)
  }

  // MARK: Quarantine

  @Test func aWrongCertificateKeepsAnEndpointOut() {
    var scene = scene
    scene.call(scene.plan(), [.failed(one, .wrongName), .ready(two, milliseconds: 40)])
    let plan = scene.plan()
    #expect(plan.addresses == [two, three])
    #expect(plan.exclusion(of: one) == .wrongName(nextCheck: .seconds(2)))
    scene.wait(0.9)
    #expect(scene.state(one) == .quarantined)
    scene.probe(one, milliseconds: 20)
    #expect(scene.order() == [one, two, three])
  }

  @Test func withAllInQuarantineThereIsDNSAlone() {
    var scene = Scene([one, two])
    for address in [one, two] { scene.probe(address, fails: .wrongName) }
    let plan = scene.plan()
    #expect(plan.legs == [RoutePlan.Leg(.dns, source: .dns)])
    #expect(plan.withoutList == .excluded)
    #expect(plan.candidates.allSatisfy { $0.excluded != nil })
    #expect(!plan.startsTwo)
  }

  @Test func quarantineDoesNotCountAsAnOpenCircuit() {
    var scene = Scene([one, two])
    scene.probe(one, fails: .wrongName)
    scene.wait(1)
    for _ in 0..<3 { scene.probe(two, fails: .refused) }
    let plan = scene.plan()
    #expect(plan.addresses == [two])
    #expect(plan.withoutList == .circuitsOpen)
  }

  @Test func whoDoesNotVerifyMayGoThere() {
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
    // The first plan of who verifies is the check, and nobody else's.
    #expect(scene.state(one) == .halfOpen)
    #expect(scene.order() == [one, two, three])
    #expect(scene.order() == [two, three])
    #expect(scene.plan(options).addresses == [one, two, three])
  }

  @Test func aPooledConnectionShowsNoCertificate() {
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

  @Test func answersKeepTheirOrderButForTheLastWinnerAndOpenCircuits() {
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

  @Test func anAnswerThatIsListedSharesItsHealth() {
    var scene = scene
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    #expect(
      scene.planner.ordered([one, two], for: scene.origin, at: scene.now).map(\.address) == [two, one])
    scene.call(scene.plan(), [.ready(one, milliseconds: 20, source: .dns)])
    #expect(scene.state(one) == .closed)
    #expect(
      scene.planner.ordered([two, one], for: scene.origin, at: scene.now).map(\.address) == [one, two])
  }

  @Test func rememberedAnswersAreLimited() {
    var routes = HostRoutes(Origin(.https, host: "b.example"), listed: [], configuration: .init(), seed: 1)
    for number in 0..<500 {
      routes.update(IPAddress(v4: 0xc633_6400 + UInt32(number)), at: .at(Double(number))) {
        $0.succeeded(connect: nil, ready: .milliseconds(10), at: .at(Double(number)))
      }
    }
    let known = (0..<500).filter { routes.health(of: IPAddress(v4: 0xc633_6400 + UInt32($0))) != nil }
    #expect(known == Array(436..<500))
  }

  @Test func rememberedOriginsAreLimited() {
    var scene = scene
    for number in 0..<5000 {
      let origin = Origin(.https, host: "h\(number).example")
      scene.planner.learned(version: .http1_1, for: origin, options: RequestOptions())
    }
    let remembered = (0..<5000).count { number in
      let origin = Origin(.https, host: "h\(number).example")
      return !scene.planner.plan(for: origin, now: scene.now, wall: today).multiplexes
    }
    #expect((1...RoutePlanner.mostUnlisted).contains(remembered))
    #expect(scene.plan().candidates.first?.score == .milliseconds(20))
  }

  /// A list may have ten thousand endpoints, and the network takes them all along when it goes: what it took is given back in one
  /// go, in much less time than it took to hold it against them one by one.
  @Test func forgivingManyIsQuick() throws {
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
    let holding = clock.measure {
      for address in addresses {
        for _ in 0..<3 {
          let failure = LegError(LegFailure(.connectTimeout, "it did not answer"))
          routes.record(probe: .failure(failure), of: address, isFrozen: false, at: failed, using: &random)
        }
      }
    }
    #expect(routes.ranking.entries.isEmpty && routes.excluded.count == addresses.count)
    let forgiving = clock.measure { routes.forgive(since: start, at: failed) }
    #expect(routes.ranking.entries == before && routes.excluded.isEmpty)
    #expect(forgiving < holding / 20, "\(forgiving), and \(holding) to hold it against them")
  }
}
