import NetOptCore
import Testing

@testable import NetOptRouting

/// How an endpoint with a wrong certificate returns to use.
@Suite struct QuarantineTests {
  private let one = ip("192.0.2.1")
  private let two = ip("192.0.2.2")

  /// A scene with a measurement of each endpoint: 20 ms and 40 ms. `isProbed` says whether the client makes
  /// background probes, which then check certificates.
  private func scene(_ seed: UInt64 = 1, isProbed: Bool = true) -> Scene {
    var configuration = RoutingConfiguration()
    configuration.probesInBackground = isProbed
    var scene = Scene([one, two], configuration: configuration, seed: seed)
    scene.probe(one, milliseconds: 20)
    scene.probe(two, milliseconds: 40)
    return scene
  }

  /// Moves the clock to the moment at which the certificate check of an endpoint is due, and returns the
  /// check. Takes all probes that are due before it, as `BackgroundProbes` does. Each of them succeeds.
  private func waitForCheck(_ scene: inout Scene, of address: IPAddress) throws -> DueProbe {
    while true {
      try scene.waitForProbe()
      for due in scene.planner.dueProbes(at: scene.now) {
        if due.address == address { return due }
        scene.probe(due.address, milliseconds: 40)
      }
    }
  }

  @Test(
    "the waits between certificate checks double from 1 s to 60 s, and jitter only lengthens them",
    arguments: 1...20 as ClosedRange<UInt64>)
  func waits(_ seed: UInt64) throws {
    var scene = scene(seed)
    scene.probe(one, fails: .wrongName)
    for wait in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
      // This plan keeps the origin in use.
      #expect(scene.order() == [two])
      let begun = scene.now
      let check = try waitForCheck(&scene, of: one)
      #expect(check.checksCertificate && !check.keepsConnection)
      #expect((.seconds(wait) ... .seconds(Double(wait) * 1.2)).contains(scene.now - begun))
      scene.probe(one, fails: .wrongName)
    }
    _ = try waitForCheck(&scene, of: one)
    scene.probe(one, milliseconds: 20)
    #expect(scene.order() == [one, two])
    // A new quarantine begins with the first wait again.
    scene.probe(one, fails: .wrongName)
    let begun = scene.now
    _ = try waitForCheck(&scene, of: one)
    #expect(scene.now - begun <= .seconds(1.2))
  }

  /// Random events for three hours: requests, requests without verification and, in some runs, background
  /// probes. The test counts the handshakes of probes and of requests that verify. Requests without
  /// verification use the endpoint too, but must not end its quarantine.
  @Test(
    "an endpoint with a wrong certificate gets at most one handshake a minute after the first six",
    arguments: 1...30 as ClosedRange<UInt64>)
  func oneHandshakeAMinute(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var scene = scene(seed, isProbed: Bool.random(using: &random))
    scene.probe(one, fails: .wrongName)
    let seen = scene.now
    var handshakes = 0
    var unverified = RequestOptions()
    unverified.verification = .none
    while scene.now - seen < .seconds(3 * 3600) {
      scene.wait(Double.random(in: 0...Double.random(in: 0.1...30, using: &random), using: &random))
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        let begun = scene.now
        let plan = scene.plan(unverified)
        scene.wait(0.1)
        scene.planner.record(
          RouteReport(plan: plan, legs: [.ready(one, milliseconds: 20)]), from: begun, at: scene.now)
      case 1 where scene.planner.configuration.probesInBackground:
        for due in scene.planner.dueProbes(at: scene.now) {
          if due.address == two {
            scene.probe(two, milliseconds: 40)
          } else {
            handshakes += 1
            scene.probe(one, fails: .wrongName)
          }
        }
      default:
        let begun = scene.now
        let plan = scene.plan()
        var legs = [RouteReport.Leg.ready(two, from: 20, milliseconds: 40)]
        if plan.addresses.first == one {
          handshakes += 1
          legs.insert(.failed(one, .wrongName), at: 0)
        }
        // Another request is planned before the result is known.
        if Bool.random(using: &random) {
          let beside = scene.order()
          #expect(plan.addresses.first != one || beside == [two])
        }
        scene.wait(0.06)
        scene.planner.record(RouteReport(plan: plan, legs: legs), from: begun, at: scene.now)
      }
      #expect(scene.state(one) != .closed)
    }
    let seconds = (scene.now - seen).milliseconds / 1000
    // The first six waits are 1 to 32 s, the later ones 60 s. Jitter makes a wait of 60 s up to 72 s long.
    // The check follows with the next probe or request.
    #expect(Double(handshakes) <= 6 + seconds / 60)
    #expect(Double(handshakes) >= seconds / 110)
  }

  @Test("with all endpoints in quarantine, plans use DNS until one certificate is verified")
  func allAtOnce() throws {
    var scene = scene()
    let plan = scene.plan()
    scene.call(
      plan,
      [
        .failed(one, .wrongName), .failed(two, .wrongName),
        .ready(ip("192.0.2.9"), milliseconds: 5, source: .dns),
      ])
    #expect(scene.plan().noneUsable == .excluded)
    #expect(scene.plan().legs == [RoutePlan.Leg(.dns, source: .dns)])
    let mended = scene.now
    _ = try waitForCheck(&scene, of: two)
    scene.probe(two, milliseconds: 40)
    #expect(scene.order() == [two])
    #expect(scene.now - mended <= .seconds(1.2))
  }

  @Test("a plan has no leg to an endpoint whose certificate is being checked")
  func underWay() throws {
    var scene = scene()
    for address in [one, two] { scene.probe(address, fails: .wrongName) }
    _ = scene.plan()
    var checked: [IPAddress] = []
    while !checked.contains(one) {
      try scene.waitForProbe()
      checked = scene.planner.dueProbes(at: scene.now).map(\.address)
    }
    let plan = scene.plan()
    #expect(plan.legs == [RoutePlan.Leg(.dns, source: .dns)])
    #expect(plan.noneUsable == .excluded && !plan.startsTwo)
    #expect(plan.exclusion(of: one) == .wrongName(nextCheck: nil))
  }

  @Test("without probes, the first request after the wait is the certificate check")
  func withoutProbes() throws {
    var scene = scene(isProbed: false)
    scene.call(scene.plan(), [.failed(one, .wrongName), .ready(two, milliseconds: 40)])
    #expect(scene.order() == [two])
    #expect(scene.plan().exclusion(of: one) == .wrongName(nextCheck: .seconds(2), byProbe: false))
    scene.wait(1.2)
    let check = scene.plan()
    #expect(check.addresses == [one, two])
    #expect(scene.order() == [two])
    // The certificate is still wrong. The next check comes after twice the wait.
    scene.call(check, [.failed(one, .wrongName), .ready(two, milliseconds: 40)])
    scene.wait(1.9)
    #expect(scene.order() == [two])
    scene.wait(0.5)
    let second = scene.plan()
    #expect(second.addresses == [one, two])
    scene.call(second, [.ready(one, milliseconds: 20)])
    #expect(scene.state(one) == .closed)
    #expect(scene.order() == [one, two])
  }

  /// A request gives the check back when it does not use its plan.
  @Test("when a request gives its certificate check back, a request makes it 1 s later")
  func notMade() {
    var scene = scene(isProbed: false)
    scene.probe(one, fails: .wrongName)
    scene.wait(1.2)
    let check = scene.plan()
    #expect(check.addresses == [one, two])
    scene.planner.giveBackAttempt(of: check, at: scene.now)
    #expect(scene.order() == [two])
    scene.wait(1)
    #expect(scene.order() == [one, two])
  }

  @Test("a connection of a call that began before the last certificate failure ends no quarantine")
  func verifiedBefore() {
    var scene = scene()
    let begun = scene.now
    let plan = scene.plan()
    scene.wait(1)
    scene.probe(one, fails: .wrongName)
    let report = RouteReport(plan: plan, legs: [.ready(one, milliseconds: 20)])
    scene.planner.record(report, from: begun, at: scene.now)
    #expect(scene.state(one) == .quarantined)
    // A leg that lost its race verified the certificate as well.
    scene.wait(0.1)
    let later = RouteReport(
      plan: plan, legs: [.ready(one, .lost, milliseconds: 50), .ready(two, milliseconds: 40)])
    scene.planner.record(later, from: scene.now, at: scene.now + .milliseconds(60))
    #expect(scene.state(one) == .closed)
  }

  @Test("a request that is pinned to an endpoint ends its quarantine only when it verifies")
  func pinned() {
    var scene = scene()
    scene.probe(one, fails: .wrongName)
    var options = RequestOptions()
    options.routing = .pinned(one)
    let plan = scene.plan(options)
    #expect(plan.verifies)
    scene.call(plan, [.ready(one, milliseconds: 20)])
    #expect(scene.state(one) == .closed)
    scene.probe(one, fails: .wrongName)
    options.verification = .none
    let unverified = scene.plan(options)
    #expect(!unverified.verifies)
    scene.call(unverified, [.ready(one, milliseconds: 20)])
    #expect(scene.state(one) == .quarantined)
  }

  @Test(
    "the exclusion reason counts the seconds down to the next certificate check",
    arguments: SelectionPolicy.allCases)
  func whenItIsProbedAgain(_ policy: SelectionPolicy) throws {
    var scene = Scene([one, two], configuration: RoutingConfiguration(policy: policy))
    scene.probe(two, milliseconds: 40)
    // After three failed checks, the wait is at least 8 s.
    for _ in 0..<4 { scene.probe(one, fails: .wrongName) }
    let due = try #require(scene.planner.hosts[0].endpoints[0].health.certificateCheck(at: scene.now))
    // Requests leave a due check to the probes for 1 s. In this time, plans still exclude the endpoint.
    while scene.now < due + .seconds(0.9) {
      let rest = (due - scene.now).milliseconds / 1000
      let reason = ExclusionReason.wrongName(nextCheck: .seconds(max(0, Int(rest.rounded(.up)))))
      #expect(scene.plan().exclusion(of: one) == reason, "\(rest)")
      #expect(scene.planner.status(of: scene.origin, at: scene.now).last?.excluded == reason)
      scene.wait(0.13)
    }
    // The planner does not keep the plans whose reason has outdated seconds.
    #expect(scene.planner.hosts[0].kept.count <= 2)
  }

  @Test("the planner reuses a plan until the seconds in its exclusion reason change")
  func keptPlan() {
    var scene = scene()
    for _ in 0..<8 { scene.probe(one, fails: .wrongName) }
    var plans: [RoutePlan] = [scene.plan()]
    for _ in 0..<1000 {
      scene.wait(0.01)
      let plan = scene.plan()
      if !plan.isIdentical(to: plans[plans.count - 1]) { plans.append(plan) }
    }
    // In 10 s, the number of seconds in the reason changes about ten times. Each change leads to a new plan.
    #expect((10...12).contains(plans.count))
  }

  // MARK: DNS

  @Test("a DNS address with a wrong certificate comes last, for the same waits as a listed endpoint")
  func answers() {
    var planner = RoutePlanner(list: nil, seed: 1)
    let origin = Origin(.https, host: "b.example")
    var now = MonotonicInstant.at(0)
    let answers = [one, two]
    func order() -> [IPAddress] { planner.ordered(answers, for: origin, at: now).map(\.address) }
    func call(_ legs: [RouteReport.Leg]) {
      let plan = planner.plan(for: origin, now: now, wall: today)
      planner.record(RouteReport(plan: plan, legs: legs), from: now, at: now + .milliseconds(50))
      now = now + .milliseconds(50)
    }
    for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
      #expect(order() == [one, two])
      call([.failed(one, .wrongName, source: .dns), .ready(two, milliseconds: 5, source: .dns)])
      // `two` has won. As the last winner, it would always come first and hide the effect.
      planner.hosts[0].lastDNSAddress = nil
      now = now + .seconds(Double(wait) - 0.1)
      #expect(order() == [two, one])
      now = now + .seconds(Double(wait) * 0.2 + 0.1)
    }
    call([.ready(one, milliseconds: 5, source: .dns)])
    #expect(planner.hosts[0].health(of: one)?.isQuarantined == false)
  }

  @Test("a quarantined endpoint is not probed to find out whether the network works again")
  func networkProbe() throws {
    var scene = scene()
    #expect(scene.order() == [one, two])
    scene.probe(one, fails: .wrongName)
    let plan = scene.plan()
    scene.call(
      plan,
      [
        .failed(two, .refused), .failed(ip("192.0.2.9"), .refused, source: .dns),
        .init(
          address: nil, source: .dns, started: .zero, ended: .zero, outcome: .failed,
          failure: LegFailure(.resolve, "no answer")),
      ])
    // Two addresses and DNS have failed.
    #expect(scene.planner.suspectsNetwork(at: scene.now))
    try scene.waitForProbe()
    #expect(scene.planner.dueProbes(at: scene.now).map(\.address) == [two])
  }
}
