import NetOptCore
import Testing

@testable import NetOptRouting

/// Tests what the planner learns from the times and the statuses of responses, and from requests without a
/// response.
@Suite struct AnswerTests {
  private let one = ip("192.0.2.1")
  private let two = ip("192.0.2.2")

  /// A scene with two endpoints. Probes have measured their ready times: 20 ms for `one`, and 40 ms for
  /// `two`.
  private func scene(_ policy: SelectionPolicy = .fastest) -> Scene {
    var scene = Scene([one, two], configuration: RoutingConfiguration(policy: policy))
    scene.probe(one, milliseconds: 20)
    scene.probe(two, milliseconds: 40)
    return scene
  }

  /// Records calls with this outcome over a pooled connection to an address, one every 100 ms.
  ///
  /// - Parameter failure: the failure of the connection; `nil` when the connection works, and when only the
  ///   stream failed.
  private func call(
    _ scene: inout Scene, _ address: IPAddress, _ outcome: CallOutcome, times: Int = 1,
    failure: LegFailure? = nil
  ) {
    for _ in 0..<times {
      let plan = scene.plan()
      var leg = RouteReport.Leg.ready(address, milliseconds: 0)
      leg.reused = true
      leg.failure = failure
      scene.planner.record(RouteReport(plan: plan, legs: [leg]), outcome: outcome, at: scene.now)
      scene.wait(0.1)
    }
  }

  /// The outcome of a call whose response began this many milliseconds after the end of the request.
  private func answer(_ milliseconds: Int) -> CallOutcome { .answered(wait: .milliseconds(milliseconds)) }

  @Test("three late responses in a row raise the score of an endpoint")
  func lateResponses() {
    var scene = scene()
    call(&scene, one, answer(30), times: 20)
    call(&scene, one, answer(500), times: 2)
    #expect(scene.order() == [one, two])
    call(&scene, one, answer(500))
    let plan = scene.plan()
    #expect(plan.addresses == [two, one])
    // The score is the ready time of 20 ms, and the time by which the responses come later than usual. A
    // response time is the wait without a round trip, which takes 10 ms here. So the responses take 490 ms,
    // and 20 ms with a margin are usual.
    #expect((.milliseconds(450) ... .milliseconds(500)).contains(plan.candidates[1].score ?? .zero))
  }

  /// There is one request every 8 s. The slow endpoint `one` gets some of them: its connections are faster,
  /// and its slowness fades while the other endpoint gets the requests.
  @Test("the times of a slow endpoint do not become usual while another endpoint is fast")
  func slowEndpointIsNotUsual() {
    var scene = Scene([one, two])
    scene.probe(one, milliseconds: 6)
    scene.probe(two, milliseconds: 92)
    call(&scene, two, answer(100), times: 20)
    // How many of the last 250 requests went to the slow endpoint.
    var slow = 0
    for round in 0..<500 {
      let address = scene.order()[0]
      call(&scene, address, answer(address == one ? 231 : 100))
      scene.wait(8)
      if round >= 250, address == one { slow += 1 }
    }
    #expect(slow > 0 && slow < 100, "\(slow) of 250")
  }

  @Test("when all endpoints are slow, their response times become usual after some minutes")
  func slowOriginBecomesUsual() {
    var scene = scene()
    call(&scene, one, answer(30), times: 20)
    for _ in 0..<900 {
      call(&scene, scene.order()[0], answer(300))
      scene.wait(0.9)
    }
    #expect(scene.plan().candidates.allSatisfy { ($0.score ?? .zero) < .milliseconds(60) })
  }

  @Test("the extra time of a slow endpoint counts after 60 s, and has faded after an hour")
  func slownessFades() {
    var scene = scene()
    call(&scene, one, answer(30), times: 20)
    call(&scene, one, answer(300), times: 3)
    #expect(scene.order() == [two, one])
    scene.wait(60)
    #expect(scene.order() == [two, one])
    scene.wait(3600)
    #expect(scene.order() == [one, two])
    // One late response is enough to make an endpoint slow again.
    call(&scene, one, answer(300))
    #expect(scene.order() == [two, one])
  }

  @Test("twelve on-time responses in two minutes end the slowness of an endpoint")
  func onTimeResponses() {
    var scene = scene()
    call(&scene, one, answer(30), times: 20)
    call(&scene, one, answer(150), times: 3)
    #expect(scene.order() == [two, one])
    for _ in 0..<12 {
      call(&scene, one, answer(30))
      scene.wait(10)
    }
    #expect(scene.order() == [one, two])
  }

  @Test("an endpoint whose response times vary widely does not count as slow")
  func varyingResponses() {
    var scene = scene()
    for round in 0..<60 { call(&scene, one, answer(round % 4 == 3 ? 400 : 20)) }
    #expect(scene.order() == [one, two])
  }

  @Test("the planner reuses its plan after responses that took the usual time")
  func usualResponses() {
    var scene = scene()
    call(&scene, one, answer(30), times: 20)
    let plan = scene.plan()
    call(&scene, one, answer(31), times: 50)
    #expect(scene.plan().isIdentical(to: plan))
  }

  @Test(
    "a 502, 503 or 504 response is half a failure, and only a response closes the circuit breaker",
    arguments: [502, 503, 504])
  func serviceFailure(_ status: Int) {
    var scene = scene()
    call(&scene, one, .unavailable(status: status, retryAfter: nil))
    let plan = scene.plan()
    #expect(plan.addresses == [two, one])
    // The score is the ready time of 20 ms and half of the penalty of 10 s.
    #expect(plan.candidates.last?.score == .milliseconds(5020))
    call(&scene, one, .unavailable(status: status, retryAfter: nil), times: 2)
    #expect(scene.state(one) == .closed)
    call(&scene, one, .unavailable(status: status, retryAfter: nil))
    #expect(scene.state(one) == .open)
    // A new connection does not close the circuit breaker, because connections work. The leg of the endpoint
    // starts only when no other leg is under way. Otherwise its connection would become ready first and win
    // the race, although its service fails.
    scene.probe(one, milliseconds: 20)
    #expect(scene.state(one) == .open)
    #expect(scene.plan().lastResorts.isEmpty)
    #expect(scene.plan().addressesStartingAlone == [one])
    // After 7 s the open time is over, and the plan makes the one attempt.
    scene.wait(7)
    let attempt = scene.plan()
    #expect(attempt.addresses == [one, two])
    call(&scene, one, answer(10))
    #expect(scene.state(one) == .closed)
  }

  @Test("plans exclude an endpoint for the time of its Retry-After")
  func retryAfter() {
    var scene = scene()
    call(&scene, one, .unavailable(status: 503, retryAfter: .seconds(30)))
    let plan = scene.plan()
    #expect(plan.addresses == [two])
    #expect(
      plan.exclusion(of: one)
        == .resting(for: .seconds(30), last: LegFailure(.other, "it answered 503")))
    scene.wait(29)
    #expect(scene.order() == [two])
    scene.wait(1)
    #expect(scene.order() == [one, two])
  }

  @Test("the only endpoint starts together with DNS while it rests, which it does for at most 300 s")
  func restOfOnlyEndpoint() {
    var scene = Scene([one])
    call(&scene, one, .unavailable(status: 503, retryAfter: .seconds(86_400)))
    #expect(scene.order() == [one])
    #expect(scene.plan().startsTwo)
    scene.wait(301)
    #expect(scene.state(one) == .halfOpen)
  }

  @Test("silence and broken connections count as failures, and unknown outcomes do not")
  func failedOutcomes() {
    for outcome in [CallOutcome.silent, .broke] {
      var scene = scene()
      call(&scene, one, outcome)
      #expect(scene.order() == [two, one])
      call(&scene, one, outcome, times: 4)
      #expect(scene.state(one) == .open)
    }
    var scene = scene()
    call(&scene, one, .unknown, times: 10)
    #expect(scene.order() == [one, two])
  }

  @Test("a connection that fails under a request counts in full, and a failed stream counts half")
  func brokenConnection() {
    var scene = scene()
    call(&scene, one, .broke, times: 3, failure: .refused)
    #expect(scene.state(one) == .open)
    // The endpoint refused a new connection. A connection that becomes ready closes the circuit breaker.
    scene.probe(one, milliseconds: 20)
    #expect(scene.state(one) == .closed)
    // A ready connection broke under each request. So a new ready connection does not show that the endpoint
    // works again.
    call(&scene, one, .broke, times: 3, failure: LegFailure(.reset, "closed"))
    #expect(scene.state(one) == .open)
    scene.probe(one, milliseconds: 20)
    #expect(scene.state(one) == .open)
    // When only the stream fails, the service is to blame, and the failure counts half. So three of them do
    // not open the circuit breaker.
    call(&scene, two, .broke, times: 3)
    #expect(scene.state(two) == .closed)
  }

  @Test("an endpoint whose connections break is tried after DNS, and after those that refuse")
  func brokenEndpointIsALastResort() {
    // The connection breaks, or only the stream.
    for failure in [LegFailure(.reset, "closed"), nil] {
      let three = ip("192.0.2.3")
      var scene = Scene([one, two, three])
      call(&scene, one, .broke, times: 6, failure: failure)
      #expect(scene.plan().lastResorts == [one])
      scene.wait(0.1)
      for _ in 0..<3 { scene.probe(two, fails: .refused) }
      #expect(scene.plan().lastResorts == [two, one])
      #expect(scene.plan().addresses == [three])
    }
  }

  @Test("a plan tries a silent endpoint after all other legs, and a resting endpoint never")
  func silentEndpointIsLast() {
    let three = ip("192.0.2.3")
    var scene = Scene([one, two, three])
    call(&scene, one, .silent, times: 6)
    #expect(scene.state(one) == .open)
    #expect(scene.plan().lastResorts.isEmpty)
    #expect(scene.plan().addressesStartingAlone == [one])
    call(&scene, two, .unavailable(status: 503, retryAfter: .seconds(30)))
    #expect(scene.state(two) == .open)
    #expect(scene.plan().lastResorts.isEmpty)
    #expect(scene.plan().addressesStartingAlone == [one])
    #expect(scene.plan().addresses == [three])
  }

  @Test("a wrong certificate on the replacement of a broken connection causes a quarantine")
  func impostor() {
    var scene = scene()
    call(&scene, one, .broke, failure: .wrongName)
    #expect(scene.state(one) == .quarantined)
    #expect(scene.order() == [two])
  }

  /// Records a call without a response, over a pooled connection. The call ends at its deadline, 10 s after
  /// its start. `milliseconds` is the time from the sending of the request to the deadline.
  private func silence(_ scene: inout Scene, _ address: IPAddress, milliseconds: Double) {
    // When the call began, on the clock of the scene.
    let begun = scene.now
    let plan = scene.plan()
    var leg = RouteReport.Leg.ready(address, from: 10_000 - milliseconds, milliseconds: 0)
    leg.reused = true
    scene.wait(10)
    scene.planner.record(
      RouteReport(plan: plan, legs: [leg]), outcome: .silent, from: begun, at: scene.now)
  }

  @Test("a timeout counts as silence only when the request was sent at least 1 s before")
  func shortSilence() {
    var scene = scene()
    for _ in 0..<10 { silence(&scene, one, milliseconds: 900) }
    #expect(scene.order() == [one, two])
    silence(&scene, one, milliseconds: 1000)
    #expect(scene.order() == [two, one])
  }

  @Test("after fast responses, a timeout counts as silence when the request was sent 250 ms before")
  func silenceAfterFastResponses() {
    var scene = scene()
    call(&scene, one, answer(30), times: 20)
    for _ in 0..<10 { silence(&scene, one, milliseconds: 200) }
    #expect(scene.order() == [one, two])
    silence(&scene, one, milliseconds: 250)
    #expect(scene.order() == [two, one])
  }

  @Test("a failure does not count when its call began before the last success of the endpoint")
  func failureBeforeSuccess() {
    var scene = scene()
    // The start of a call that fails after another call has succeeded.
    let begun = scene.now
    let plan = scene.plan()
    scene.wait(1)
    call(&scene, one, answer(30))
    for _ in 0..<5 {
      scene.planner.record(
        RouteReport(plan: plan, legs: [.ready(one, milliseconds: 0)]), outcome: .silent, from: begun,
        at: scene.now)
    }
    #expect(scene.order() == [one, two])
    scene.planner.record(
      RouteReport(plan: plan, legs: [.failed(one, .refused)]), outcome: .unknown, from: begun, at: scene.now)
    #expect(scene.order() == [one, two])
    scene.planner.record(
      RouteReport(plan: plan, legs: [.failed(one, .refused)]), outcome: .unknown, from: scene.now,
      at: scene.now)
    #expect(scene.order() == [two, one])
  }

  @Test func oldSamplesWeighLess() {
    var scene = scene()
    for _ in 0..<3 {
      scene.wait(360)
      scene.probe(two, milliseconds: 10)
    }
    // Each new sample of 10 ms counts half, because 360 s have passed. So the score of `two` goes from 40 ms
    // to 25, 17.5 and 13.75 ms. With samples in quick succession, which count an eighth, it would end at 30
    // ms.
    let plan = scene.plan()
    #expect(plan.addresses == [two, one])
    #expect(plan.candidates.first?.score == .microseconds(13_750))
  }

  // MARK: Policies

  @Test("with the pinned policy, the first endpoint stays first until it fails")
  func pinnedPolicy() {
    var scene = scene(.pinned)
    #expect(scene.order() == [one, two])
    for _ in 0..<40 { scene.probe(two, milliseconds: 1) }
    #expect(scene.order() == [one, two])
    #expect(scene.plan().policy == .pinned)
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    #expect(scene.order() == [two])
    scene.probe(one, milliseconds: 1)
    #expect(scene.order() == [two, one])
  }

  @Test("the balanced policy gives an endpoint with twice the score half the requests under way")
  func balancedPolicy() {
    var scene = scene(.balanced)
    var counts: [IPAddress: Int] = [:]
    var plans: [RoutePlan] = []
    for _ in 0..<30 {
      let plan = scene.plan()
      scene.planner.began(plan)
      plans.append(plan)
      counts[plan.addresses[0], default: 0] += 1
    }
    // The score of the second endpoint is twice as high, so it gets half as many requests.
    #expect(counts == [one: 20, two: 10])
    for plan in plans { scene.planner.ended(plan) }
    #expect(scene.order() == [one, two])
    #expect(scene.plan().isIdentical(to: scene.plan()))
  }

  // MARK: The network

  @Test("failures of all endpoints and DNS count against the network until a probe succeeds")
  func suspectedNetwork() throws {
    var scene = scene()
    scene.probe(one, fails: .refused)
    scene.wait(1)
    scene.call(scene.plan(), [.failed(one, .refused)])
    scene.wait(1)
    // The leg of a DNS lookup to which no name server responded.
    let lookUp = RouteReport.Leg(
      address: nil, source: .dns, started: .zero, ended: .milliseconds(9), outcome: .failed,
      failure: LegFailure(.resolve, "no name server answered"))
    scene.call(scene.plan(), [.failed(one, .refused), .failed(two, .refused), lookUp])
    let plan = scene.plan()
    #expect(plan.suspectsNetwork)
    #expect(plan.addresses == [one, two])
    // The suspicion has undone the penalties of both endpoints.
    #expect(plan.candidates.map(\.score) == [.milliseconds(20), .milliseconds(40)])
    for _ in 0..<9 { scene.probe(two, fails: .refused) }
    #expect(scene.state(two) == .closed)
    // Only one endpoint is probed, because its probe shows whether the network works. The pauses between the
    // probes are 1, 2, 4 and 8 s.
    var pauses: [Double] = []
    for _ in 0..<4 {
      let before = scene.now
      try scene.waitForProbe()
      pauses.append((scene.now - before).milliseconds / 1000)
      #expect(scene.planner.dueProbes(at: scene.now).map(\.address) == [one])
      scene.probe(one, fails: .refused)
    }
    #expect(pauses == [1, 2, 4, 8])
    scene.probe(one, milliseconds: 20)
    #expect(!scene.plan().suspectsNetwork)
    scene.probe(two, fails: .refused)
    #expect(scene.plan().candidates.last?.score == .milliseconds(10_040))
  }

  @Test(
    // The argument is the failure of the connection; `nil` when only the stream broke.
    "failed DNS and broken connections make the planner suspect the network, broken streams do not",
    arguments: [nil, LegFailure(.reset, "closed")])
  func signsOfTheNetwork(_ failure: LegFailure?) {
    var scene = scene()
    call(&scene, one, .broke, failure: failure)
    call(&scene, two, .broke, failure: failure)
    let lookUp = RouteReport.Leg(
      address: nil, source: .dns, started: .zero, ended: .milliseconds(9), outcome: .failed,
      failure: LegFailure(.resolve, "no name server answered"))
    scene.call(scene.plan(), [lookUp])
    #expect(scene.plan().suspectsNetwork == (failure != nil))
  }

  @Test("failed endpoints and a missing DNS name do not make the planner suspect the network")
  func missingName() {
    var scene = scene()
    // The leg of a DNS lookup whose name does not exist. The name servers work.
    let lookUp = RouteReport.Leg(
      address: nil, source: .dns, started: .zero, ended: .milliseconds(9), outcome: .failed,
      failure: LegFailure(.nameNotFound, "no such name"))
    scene.call(scene.plan(), [.failed(one, .refused), .failed(two, .refused), lookUp])
    #expect(!scene.plan().suspectsNetwork)
    #expect(scene.plan().candidates.first?.score == .milliseconds(10_020))
  }

  @Test("the planner stops suspecting the network after 30 s")
  func suspicionEnds() {
    var scene = scene()
    let lookUp = RouteReport.Leg(
      address: nil, source: .dns, started: .zero, ended: .milliseconds(9), outcome: .failed,
      failure: LegFailure(.resolve, "no name server answered"))
    scene.call(scene.plan(), [.failed(one, .unreachable), .failed(two, .unreachable), lookUp])
    #expect(scene.plan().suspectsNetwork)
    scene.wait(30)
    #expect(!scene.plan().suspectsNetwork)
  }

  // MARK: Outcomes

  @Test(
    "the outcome of a call follows from the response's status and Retry-After",
    arguments: [
      (200, nil, CallOutcome.answered(wait: .zero)), (500, "9", .answered(wait: .zero)),
      (429, "9", .answered(wait: .zero)), (503, nil, .unavailable(status: 503, retryAfter: nil)),
      (503, "120", .unavailable(status: 503, retryAfter: .seconds(120))),
      (502, "-1", .unavailable(status: 502, retryAfter: nil)),
      (504, "Wed, 21 Oct 2026 07:28:00 GMT", .unavailable(status: 504, retryAfter: nil)),
    ])
  func outcomeOfResponse(_ status: Int, _ retryAfter: String?, _ expected: CallOutcome) throws {
    var fields = HeaderFields()
    if let retryAfter { fields["Retry-After"] = retryAfter }
    var scene = scene()
    let response = NetOptResponse(
      url: try HTTPURL("https://a.example/"), head: ResponseHead(status: status, fields: fields),
      body: ResponseBody([]), route: RouteReport(plan: scene.plan(), legs: []))
    #expect(CallOutcome(response) == expected)
  }

  @Test("the outcome of a call follows from the code and the phase of its error")
  func outcomeOfError() {
    #expect(CallOutcome(NetOptError(.receiveFailed, phase: .receive, "x")) == .broke)
    #expect(CallOutcome(NetOptError(.protocolViolation, phase: .receive, "x")) == .broke)
    // The stream of the request's body failed, which may itself be the response of another server.
    for code in [NetOptError.Code.sendFailed, .receiveFailed, .protocolViolation, .timeout] {
      let error = NetOptError(code, phase: .receive, "x")
      #expect(CallOutcome(error.with(cause: error)) == .unknown)
    }
    #expect(CallOutcome(NetOptError(.headTooLarge, phase: .receive, "x")) == .unknown)
    #expect(CallOutcome(NetOptError(.timeout, phase: .receive, "x")) == .silent)
    #expect(CallOutcome(NetOptError(.timeout, phase: .connect, "x")) == .unknown)
    #expect(CallOutcome(NetOptError(.cancelled, phase: .receive, "x")) == .unknown)
  }
}
