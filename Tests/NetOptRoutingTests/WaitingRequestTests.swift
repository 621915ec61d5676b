import NetOptCore
import Testing

@testable import NetOptRouting

/// What the planner learns from requests that wait for responses (`RoutePlanner.observe`).
@Suite struct WaitingRequestTests {
  static let a = ip("192.0.2.1"), b = ip("192.0.2.2"), c = ip("192.0.2.3")

  /// A scene with three endpoints, of which `a` is the quickest to connect to and the first in plans.
  /// Endpoint `a` has responded 20 times, after 10 ms each time, so the usual response time is known. A
  /// response is overdue after 250 ms (`HostRoutes.silenceBound`).
  func scene() -> Scene {
    var scene = Scene([Self.a, Self.b, Self.c])
    for (address, time) in [(Self.a, 10.0), (Self.b, 40), (Self.c, 60)] {
      scene.probe(address, milliseconds: time)
    }
    for _ in 0..<20 { answer(&scene, Self.a) }
    scene.wait(1)
    return scene
  }

  /// Moves the clock by `milliseconds`, and records a response of an endpoint that came after this time on a
  /// pooled connection.
  func answer(_ scene: inout Scene, _ address: IPAddress, milliseconds: Double = 10) {
    let plan = scene.plan()
    scene.wait(milliseconds / 1000)
    var leg = RouteReport.Leg.ready(address, milliseconds: 0)
    leg.reused = true
    let begun = scene.now + .milliseconds(-milliseconds)
    let report = RouteReport(plan: plan, legs: [leg])
    let outcome = CallOutcome.answered(wait: .milliseconds(milliseconds))
    scene.planner.record(report, outcome: outcome, from: begun, at: scene.now)
    scene.planner.answered(request(), along: report, outcome, status: 200, from: begun)
  }

  /// A GET request to `a.example`. The path decides its kind (`RequestKind`).
  private func request(_ path: String = "/items") -> NetOptRequest {
    NetOptRequest(.get, HTTPURL(origin: Origin(.https, host: "a.example"), target: path))
  }

  /// A request that was sent to an endpoint `milliseconds` ago and waits for its response.
  ///
  /// - Parameters:
  ///   - deadline: the time left until the deadline of the call, in seconds; `nil` for a call without a
  ///     deadline.
  ///   - lastReceived: when data last arrived on the connection, in milliseconds after the request was sent.
  ///   - answered: when response data last arrived on the connection, in milliseconds after the request was
  ///     sent; `nil` when none has arrived.
  func waiting(
    _ scene: Scene, at address: IPAddress = a, for milliseconds: Double, path: String = "/items",
    isWhole: Bool = true, mayMove: Bool = true, isFirst: Bool = true, deadline: Double? = 10,
    delivery: WaitingRequest.Delivery = .acknowledged, lastReceived: Double = 0, answered: Double? = nil
  ) -> WaitingRequest {
    let sent = scene.now + .milliseconds(-milliseconds)
    return WaitingRequest(
      origin: scene.origin, address: address, kind: RequestKind(request(path)), sent: sent,
      lastReceived: sent + .milliseconds(lastReceived), answered: answered.map { sent + .milliseconds($0) },
      delivery: delivery, deadline: deadline.map { scene.now + .seconds($0) }, isWhole: isWhole,
      mayMove: mayMove, isFirst: isFirst)
  }

  /// What the planner finds when it looks at these waiting requests now.
  func observe(_ scene: inout Scene, _ waiting: [WaitingRequest]) -> WaitFindings {
    scene.planner.observe(waiting: waiting, now: scene.now)
  }

  @Test("requests that wait for 200 ms cause no probe and no suspicion")
  func usualWaits() {
    var scene = scene()
    let findings = observe(&scene, (0..<100).map { _ in waiting(scene, for: 200) })
    #expect(findings.probes.isEmpty && findings.taken.isEmpty)
    #expect(scene.plan().addresses.first == Self.a)
  }

  @Test("an endpoint whose request waits for 300 ms comes last and is probed once, beside another one")
  func suspicion() {
    var scene = scene()
    #expect(scene.plan().addresses.first == Self.a)
    // The probe of another endpoint is for comparison.
    let findings = observe(&scene, [waiting(scene, for: 300)])
    #expect(findings.probes.map(\.address).first == Self.a && findings.probes.count == 2)
    #expect(findings.probes.allSatisfy { !$0.keepsConnection })
    #expect(findings.taken.isEmpty)
    #expect(scene.plan().addresses.last == Self.a)
    #expect(scene.state(Self.a) == .closed)
    // The planner asks for probes once, and then waits for their results.
    #expect(observe(&scene, [waiting(scene, for: 300)]).probes.isEmpty)
  }

  @Test("data after a request delays the suspicion of its endpoint, and response data prevents it")
  func dataAfterRequest() {
    var scene = scene()
    #expect(observe(&scene, [waiting(scene, for: 400, lastReceived: 200)]).probes.isEmpty)
    #expect(observe(&scene, [waiting(scene, for: 600, lastReceived: 200, answered: 200)]).probes.isEmpty)
    #expect(scene.plan().addresses.first == Self.a)
    // Response data that netopt reads 5 ms after it sent the request may have arrived before. It may belong
    // to an earlier request, so it does not prevent the suspicion.
    #expect(observe(&scene, [waiting(scene, for: 600, lastReceived: 200, answered: 5)]).probes.count == 2)
    #expect(scene.plan().addresses.last == Self.a)
    var another = self.scene()
    #expect(observe(&another, [waiting(another, for: 600, lastReceived: 200)]).probes.count == 2)
  }

  /// A request that waited during a suspicion is no evidence for a new one.
  @Test("a suspicion ends when a new connection works, and the same request causes no other one")
  func fewSlowRequests() {
    var scene = scene()
    let slow = waiting(scene, for: 300)
    _ = observe(&scene, [slow])
    scene.probe(Self.a, milliseconds: 10)
    #expect(observe(&scene, [slow]).taken.isEmpty)
    #expect(scene.plan().addresses.first == Self.a)
    // However long the request waits, it causes no second probe.
    scene.wait(60)
    #expect(observe(&scene, [slow]).probes.isEmpty)
    #expect(scene.plan().addresses.first == Self.a)
  }

  /// Only the first request can be taken. The others may not move, have no time left, are not overdue, wait
  /// at another endpoint, or were not sent whole.
  @Test("requests are taken when a new connection to their endpoint fails and another endpoint works")
  func takenWithoutConnection() {
    var scene = scene()
    let requests = [
      waiting(scene, for: 300), waiting(scene, for: 310, mayMove: false),
      waiting(scene, for: 320, deadline: 0.01), waiting(scene, for: 5), waiting(scene, at: Self.b, for: 330),
      waiting(scene, for: 900, path: "/other", isWhole: false),
    ]
    _ = observe(&scene, requests)
    scene.probe(Self.a, fails: LegFailure(.tlsTimeout, "TLS: no answer"))
    // No other endpoint was seen to work since the request was sent.
    let before = observe(&scene, requests)
    #expect(before.taken.isEmpty && before.silent.isEmpty)
    scene.wait(0.001)
    scene.probe(Self.c, milliseconds: 10)
    let findings = observe(&scene, requests)
    #expect(findings.taken.map(\.position) == [0])
    #expect(findings.silent == [SilentEndpoint(origin: scene.origin, address: Self.a)])
    #expect(findings.taken.allSatisfy { $0.failure.kind == .silent })
    #expect(scene.state(Self.a) == .open)
    #expect(scene.plan().exclusion(of: Self.a)?.description.contains("went silent") == true)
  }

  @Test("requests are taken when another endpoint answers requests of their kind")
  func takenForAnswersElsewhere() {
    var scene = scene()
    let requests =
      (0..<3).map { waiting(scene, for: 300, path: "/items/\($0)") }
      + [waiting(scene, for: 300, path: "/reports")]
    _ = observe(&scene, requests)
    scene.planner.answered(
      request("/items/77"), along: elsewhere(scene), .answered(wait: .milliseconds(20)), status: 200,
      from: scene.now)
    let findings = observe(&scene, requests)
    #expect(findings.taken.map(\.position) == [0, 1, 2])
    #expect(scene.state(Self.a) == .open)
    // A connection does not close the circuit breaker. Only a response does.
    scene.probe(Self.a, milliseconds: 10)
    #expect(scene.state(Self.a) == .open)
  }

  @Test(
    "responses elsewhere that are not comparable take no request from an endpoint",
    arguments: [
      // The path of a call, the wait for its response in ms, the start of the call in s from now, and the
      // address that responded. In order: the call began before the waiting requests were sent; its response
      // took long; its request is of another kind; the suspected endpoint itself responded.
      ("/items/1", 20, -1.0, "192.0.2.2"), ("/items/1", 400, 0, "192.0.2.2"), ("/items", 20, 0, "192.0.2.2"),
      ("/items/1", 20, 0, "192.0.2.1"),
    ])
  func incomparableResponses(
    _ path: String, _ wait: Int, _ begun: Double, _ address: String
  ) {
    var scene = scene()
    let requests = (0..<3).map { waiting(scene, for: 300, path: "/items/\($0)") }
    _ = observe(&scene, requests)
    scene.planner.answered(
      request(path), along: elsewhere(scene, ip(address)), .answered(wait: .milliseconds(wait)), status: 200,
      from: scene.now + .seconds(begun))
    #expect(observe(&scene, requests).taken.isEmpty)
  }

  /// The trial takes 1 s. The new connection may need longer until it is ready or fails.
  @Test("requests wait for the result of the new connection, also after the trial")
  func waitForConnection() {
    var scene = scene()
    let request = waiting(scene, for: 300)
    _ = observe(&scene, [request])
    scene.wait(1.5)
    #expect(observe(&scene, [request]).taken.isEmpty)
    scene.probe(Self.a, fails: LegFailure(.tlsTimeout, "TLS: no answer"))
    scene.probe(Self.b, milliseconds: 40)
    #expect(observe(&scene, [request]).taken.count == 1)
  }

  /// Without probes, no new connection shows whether the endpoint works. So requests use the endpoint again
  /// after the trial and show it.
  @Test("without probes, a suspicion ends after the trial")
  func suspicionWithoutProbes() {
    var scene = scene()
    let requests = (0..<3).map { _ in waiting(scene, for: 300) }
    let findings = scene.planner.observe(waiting: requests, probes: false, now: scene.now)
    #expect(findings.probes.isEmpty)
    #expect(scene.plan().addresses.last == Self.a)
    scene.wait(1.1)
    _ = scene.planner.observe(waiting: requests, probes: false, now: scene.now)
    #expect(scene.plan().addresses.first == Self.a)
  }

  /// A failure of this machine, or a wrong certificate, does not show that the endpoint is dead.
  @Test(
    "a new connection that fails locally or for its certificate takes no request",
    arguments: [LegFailure.Kind.other, .unreachable, .certificateExpired])
  func unrelatedProbeFailure(_ kind: LegFailure.Kind) {
    var scene = scene()
    let request = waiting(scene, for: 300)
    _ = observe(&scene, [request])
    scene.probe(Self.a, fails: LegFailure(kind, "failed"))
    scene.probe(Self.b, milliseconds: 40)
    #expect(observe(&scene, [request]).taken.isEmpty)
  }

  /// The old request may not move, so it keeps waiting at the endpoint. It must not make the planner suspect
  /// the endpoint again.
  @Test("an endpoint that works again is used although an old request still waits there")
  func backWithStuckRequest() throws {
    var scene = scene()
    let stuck = waiting(scene, for: 300, mayMove: false, deadline: nil)
    _ = observe(&scene, [stuck])
    scene.probe(Self.a, fails: LegFailure(.tlsTimeout, "TLS: no answer"))
    scene.probe(Self.b, milliseconds: 40)
    #expect(observe(&scene, [stuck]).taken.isEmpty)
    #expect(scene.state(Self.a) == .open)
    scene.wait(6.5)
    _ = observe(&scene, [stuck])
    scene.probe(Self.a, milliseconds: 10)
    for _ in 0..<30 {
      _ = observe(&scene, [stuck])
      scene.wait(0.1)
    }
    #expect(scene.state(Self.a) == .closed)
    #expect(scene.plan().addresses.first == Self.a)
  }

  /// A request of a later attempt stays where it is. It may be one that takes long at every endpoint.
  @Test("when another endpoint answers their kind, only requests on their first attempt are taken")
  func onlyFirstAttempts() {
    var scene = scene()
    let requests = (0..<3).map { waiting(scene, for: 300, isFirst: $0 != 1) }
    _ = observe(&scene, requests)
    scene.planner.answered(
      request(), along: elsewhere(scene), .answered(wait: .milliseconds(20)), status: 200, from: scene.now)
    #expect(observe(&scene, requests).taken.map(\.position) == [0, 2])
  }

  @Test(
    "a response with status 429 or 500 elsewhere takes no request from an endpoint",
    arguments: [429, 500])
  func errorElsewhere(_ status: Int) {
    var scene = scene()
    let requests = (0..<3).map { _ in waiting(scene, for: 300) }
    _ = observe(&scene, requests)
    scene.planner.answered(
      request(), along: elsewhere(scene), .answered(wait: .milliseconds(1)), status: status, from: scene.now)
    #expect(observe(&scene, requests).taken.isEmpty)
  }

  @Test("a 503 response of a suspected endpoint ends the suspicion")
  func unavailableEndsSuspicion() {
    var scene = scene()
    let requests = (0..<3).map { _ in waiting(scene, for: 300) }
    _ = observe(&scene, requests)
    let report = RouteReport(plan: scene.plan(), legs: [.ready(Self.a, milliseconds: 10)])
    scene.planner.record(report, outcome: .unavailable(status: 503, retryAfter: nil), at: scene.now)
    #expect(observe(&scene, requests).probes.isEmpty)
    #expect(scene.planner.silentHostIndices.isEmpty)
  }

  /// An endpoint that failed before gets one attempt at a time. So one waiting request and one response
  /// elsewhere are enough.
  @Test("the only request of a half-open endpoint is taken when another endpoint answers its kind")
  func loneAttempt() {
    var scene = scene()
    for _ in 0..<3 {
      let plan = scene.plan()
      scene.planner.record(
        RouteReport(plan: plan, legs: [.ready(Self.a, milliseconds: 10)]),
        outcome: .unavailable(status: 503, retryAfter: nil), at: scene.now)
      scene.planner.record(
        RouteReport(plan: plan, legs: [.ready(Self.a, milliseconds: 10)]),
        outcome: .unavailable(status: 503, retryAfter: nil), at: scene.now)
    }
    scene.wait(7)
    #expect(scene.state(Self.a) == .halfOpen)
    let request = waiting(scene, for: 300)
    _ = observe(&scene, [request])
    scene.planner.answered(
      self.request(), along: elsewhere(scene), .answered(wait: .milliseconds(20)), status: 200,
      from: scene.now)
    #expect(observe(&scene, [request]).taken.count == 1)
    #expect(scene.state(Self.a) == .open)
  }

  /// The report of a call to which the endpoint `address` responded. By default this is `b`, which is not
  /// suspected.
  private func elsewhere(_ scene: Scene, _ address: IPAddress = b) -> RouteReport {
    var scene = scene
    return RouteReport(plan: scene.plan(), legs: [.ready(address, milliseconds: 10)])
  }

  @Test("a response of a suspected endpoint ends the suspicion")
  func responseEndsSuspicion() {
    var scene = scene()
    let requests = (0..<5).map { _ in waiting(scene, for: 300) }
    _ = observe(&scene, requests)
    #expect(scene.plan().addresses.last == Self.a)
    answer(&scene, Self.a)
    #expect(scene.plan().addresses.first == Self.a)
    #expect(observe(&scene, requests).probes.isEmpty)
  }

  @Test("a suspicion ends when no request waits")
  func noWaitingRequests() {
    var scene = scene()
    _ = observe(&scene, [waiting(scene, for: 300)])
    _ = observe(&scene, [])
    #expect(scene.plan().addresses.first == Self.a)
    #expect(scene.planner.silentHostIndices.isEmpty)
  }

  /// Random mixtures of long polls, uploads and slow requests. While connections to the servers work and no
  /// other endpoint quickly answers requests of the same kinds, the planner excludes no endpoint and takes no
  /// request.
  @Test(
    "slow services whose connections work are not excluded, and keep their requests",
    arguments: 0..<40 as Range<UInt64>)
  func slowServices(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var scene = scene()
    var slow: [WaitingRequest] = []
    var probes = 0
    for _ in 0..<600 {
      scene.wait(0.1)
      slow.removeAll { _ in Int.random(in: 0..<20, using: &random) == 0 }
      for _ in 0..<Int.random(in: 0...2, using: &random) {
        let path = ["/poll", "/report/7", "/upload"].randomElement(using: &random) ?? ""
        let front = scene.plan().addresses.first ?? Self.a
        slow.append(
          waiting(scene, at: front, for: 0, path: path, isWhole: path != "/upload", deadline: 1000))
      }
      let findings = observe(&scene, slow)
      #expect(findings.taken.isEmpty)
      for probe in findings.probes { scene.probe(probe.address, milliseconds: 10) }
      probes += findings.probes.count
      if Int.random(in: 0..<10, using: &random) == 0 {
        let quick = scene.plan()
        scene.planner.answered(
          request("/quick"),
          along: RouteReport(plan: quick, legs: [.ready(quick.addresses[0], milliseconds: 9)]),
          .answered(wait: .milliseconds(5)), status: 200, from: scene.now)
      }
      for address in [Self.a, Self.b, Self.c] {
        #expect(scene.state(address) == .closed)
        #expect(scene.plan().exclusion(of: address) == nil)
      }
    }
    // The endpoints were suspected and probed, but not all the time.
    #expect(probes > 0 && probes < 300)
  }

  /// Random requests, probe results and responses. Each taken request may be repeated. It is lost, or it has
  /// waited for at least 250 ms. Its endpoint is silent, or its connection is dead. When no request waits, no
  /// endpoint is suspected.
  @Test(
    "only repeatable requests whose endpoint is silent or whose connection is dead are taken",
    arguments: 0..<40 as Range<UInt64>)
  func takenRequests(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var scene = scene()
    let addresses = [Self.a, Self.b, Self.c]
    var lost = 0
    for _ in 0..<300 {
      scene.wait(Double.random(in: 0...0.5, using: &random))
      let requests = (0..<Int.random(in: 0...6, using: &random)).map { _ in
        waiting(
          scene, at: addresses.randomElement(using: &random) ?? Self.a,
          for: Double.random(in: 0...3000, using: &random), path: Bool.random(using: &random) ? "/x" : "/y/1",
          isWhole: Bool.random(using: &random), mayMove: Bool.random(using: &random),
          deadline: Bool.random(using: &random) ? Double.random(in: 0...1, using: &random) : nil,
          delivery: [.acknowledged, .acknowledged, .pending, .lost].randomElement(using: &random) ?? .lost)
      }
      let findings = observe(&scene, requests)
      #expect(Set(findings.taken.map(\.position)).count == findings.taken.count)
      for taken in findings.taken {
        let request = requests[taken.position]
        #expect(request.mayMove)
        #expect(request.delivery == .lost || scene.now - request.sent >= .milliseconds(250))
        // A new attempt takes at least the shortest stagger, 50 ms. In addition, a margin of 250 ms must be
        // left.
        if let deadline = request.deadline { #expect(deadline > scene.now + .milliseconds(299)) }
        // Only a request whose data the endpoint's kernel has acknowledged counts against the retry budget.
        #expect(taken.isUnacknowledged == (request.delivery != .acknowledged))
        // A request that is lost with its connection says nothing about the endpoint.
        if taken.failure.message.hasPrefix("its connection is dead") {
          #expect(request.delivery == .lost)
          lost += 1
          continue
        }
        #expect(findings.silent.contains { $0.address == request.address })
        #expect(scene.plan().addresses.first != request.address)
        #expect(scene.state(request.address) != .closed)
      }
      for probe in findings.probes where Bool.random(using: &random) {
        if Bool.random(using: &random) {
          scene.probe(probe.address, milliseconds: 10)
        } else {
          scene.probe(probe.address, fails: LegFailure(.connectTimeout, "no answer"))
        }
      }
      if Bool.random(using: &random) { answer(&scene, addresses.randomElement(using: &random) ?? Self.a) }
      _ = Int.random(in: 0..<5, using: &random) == 0 ? observe(&scene, []) : WaitFindings()
    }
    // Otherwise the test has covered no lost request.
    #expect(lost > 0)
    _ = observe(&scene, [])
    #expect(scene.planner.silentHostIndices.isEmpty)
    #expect(scene.planner.hosts.allSatisfy { !$0.hasSuspectedEndpoints })
  }
}
