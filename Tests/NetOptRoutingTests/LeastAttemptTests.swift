import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptRouting

/// Tests `leastAttempt`: the shortest possible duration of the next attempt of a call. It is the shortest
/// round trip that was measured with an address of the origin. `RetryPolicy` refuses a retry when less time
/// is left before the deadline.
@Suite struct LeastAttemptTests {
  private let one = ip("192.0.2.1")
  private let two = ip("192.0.2.2")

  /// The outcome of an attempt whose request was sent to the first address of the plan, and then failed.
  private func outcome(_ plan: RoutePlan) -> RetryPolicy.Outcome {
    .failure(
      NetOptError(
        .sendFailed, phase: .send, "it failed", isRetryable: true,
        route: RouteReport(plan: plan, legs: [.ready(plan.legs[0].address ?? one, milliseconds: 20)])))
  }

  @Test("penalties do not make the shortest attempt longer")
  func withoutPenalties() {
    var scene = Scene([one, two])
    scene.probe(one, milliseconds: 30)
    scene.probe(two, milliseconds: 80)
    for _ in 0..<2 { for address in [one, two] { scene.probe(address, fails: .refused) } }
    let plan = scene.plan()
    #expect(plan.candidates.allSatisfy { $0.score ?? .zero > .seconds(10) })
    // The TCP handshake of the faster probe took half of 30 ms.
    #expect(scene.planner.leastAttempt(after: plan, avoiding: []) == .milliseconds(15))
    #expect(scene.planner.leastAttempt(after: plan, avoiding: [one]) == .milliseconds(15))
  }

  @Test("the shortest attempt is the shortest measured round trip, and not the usual one")
  func shortest() {
    var scene = Scene([one])
    for time in [40.0, 12, 300, 50] { scene.probe(one, milliseconds: time) }
    let plan = scene.plan()
    #expect(scene.planner.leastAttempt(after: plan, avoiding: []) == .milliseconds(6))
    // Echo times are round trips as well.
    scene.planner.record(roundTrip: .milliseconds(4), of: one, for: scene.origin, at: scene.now)
    #expect(scene.planner.leastAttempt(after: plan, avoiding: []) == .milliseconds(4))
  }

  @Test("the shortest attempt is zero with an unmeasured endpoint, or when DNS or a proxy comes first")
  func unknown() {
    var scene = Scene([one, two])
    scene.probe(one, milliseconds: 30)
    let plan = scene.plan()
    #expect(scene.planner.leastAttempt(after: plan, avoiding: []) == .zero)
    scene.probe(two, milliseconds: 50)
    #expect(scene.planner.leastAttempt(after: plan, avoiding: []) == .milliseconds(15))
    // When both are avoided, the attempt begins with DNS.
    #expect(scene.planner.leastAttempt(after: plan, avoiding: [one, two]) == .zero)
    var dns = RequestOptions()
    dns.routing = .dns
    #expect(scene.planner.leastAttempt(after: scene.plan(dns), avoiding: []) == .zero)
    let proxied = scene.planner.plan(
      for: scene.origin, proxy: "http://127.0.0.1:1", now: scene.now, wall: today)
    #expect(scene.planner.leastAttempt(after: proxied, avoiding: []) == .zero)
    let elsewhere = scene.planner.plan(for: Origin(.https, host: "b.example"), now: scene.now, wall: today)
    #expect(scene.planner.leastAttempt(after: elsewhere, avoiding: []) == .zero)
  }

  /// Random probes, late responses and deadlines. When the policy refuses a retry for lack of time, the wait
  /// and the shortest round trip of the nearest endpoint together take at least the time that is left.
  @Test("no retry is refused that could have ended in time", arguments: 1...60 as ClosedRange<UInt64>)
  func refusals(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let addresses = (0..<Int.random(in: 1...4, using: &random)).map {
      IPAddress(v4: 0xc000_0200 + UInt32($0))
    }
    var scene = Scene(addresses, seed: seed)
    var policy = RetryPolicy(seed: seed)
    let request = try NetOptRequest(.get, "https://a.example/")
    var least: [IPAddress: Duration] = [:]
    var refusals = 0
    for _ in 0..<300 {
      let address = random.element(of: addresses)
      switch Int.random(in: 0..<6, using: &random) {
      case 0, 1, 2:
        let time = Double.random(in: 1...Double.random(in: 2...400, using: &random), using: &random)
        scene.probe(address, milliseconds: time)
        // A probe takes two round trips: one for TCP and one for TLS.
        let trip = Duration.nanoseconds(Duration.milliseconds(time / 2).nanoseconds)
        least[address] = min(least[address] ?? trip, trip)
      case 3: scene.probe(address, fails: random.element(of: [.refused, .wrongName, .unreachable]))
      case 4:
        let slow = CallOutcome.answered(wait: .milliseconds(Int.random(in: 1...9000, using: &random)))
        var leg = RouteReport.Leg.ready(address, milliseconds: 0)
        leg.reused = true
        scene.planner.record(RouteReport(plan: scene.plan(), legs: [leg]), outcome: slow, at: scene.now)
      default: scene.wait(Double.random(in: 0...20, using: &random))
      }
      let plan = scene.plan()
      let left = Duration.milliseconds(
        Double.random(in: 0...Double.random(in: 1...400, using: &random), using: &random))
      let avoided = Bool.random(using: &random) ? [address] : []
      var budget = RetryBudget(at: scene.now)
      let decision = policy.decide(
        after: outcome(plan), of: request, attempts: Int.random(in: 1...2, using: &random), at: scene.now,
        until: scene.now + left, shortest: scene.planner.leastAttempt(after: plan, avoiding: avoided),
        wall: today, budget: &budget)
      switch decision {
      case .giveUp(.noTimeLeft(let shortage)):
        refusals += 1
        let nearest = addresses.compactMap { least[$0] }.min() ?? .zero
        #expect(shortage.wait + nearest >= left, "seed \(seed), at \(scene.now)")
        #expect(shortage.attempt <= nearest)
      case .giveUp(let reason): Issue.record("\(reason)")
      case .decideLater: Issue.record("the budget is unused")
      case .retry(let wait, _): #expect(wait < left)
      }
    }
    #expect(refusals > 0)
  }

  /// The penalty for a failure adds 10 s to the score of an endpoint. It does not add to the duration of an
  /// attempt.
  @Test("a call with 2,992 ms left is retried although all its endpoints have just failed")
  func earlyFailure() throws {
    var scene = Scene([one, two])
    scene.probe(one, milliseconds: 30)
    scene.probe(two, milliseconds: 80)
    for address in [one, two] { scene.probe(address, fails: .refused) }
    let plan = scene.plan()
    var policy = RetryPolicy(seed: 1)
    var budget = RetryBudget(at: scene.now)
    let decision = policy.decide(
      after: outcome(plan), of: try NetOptRequest(.get, "https://a.example/"), attempts: 1, at: scene.now,
      until: scene.now + .milliseconds(2992),
      shortest: scene.planner.leastAttempt(after: plan, avoiding: [one]), wall: today, budget: &budget)
    #expect(decision == .retry(after: .zero, onFreshConnection: false))
  }
}
