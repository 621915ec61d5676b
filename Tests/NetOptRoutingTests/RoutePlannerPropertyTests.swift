import NetOptCore
import Testing

@testable import NetOptRouting

/// Properties that every plan has, whatever happened before. The events are random.
@Suite struct RoutePlannerPropertyTests {
  /// The kinds of failure that random legs and probes have.
  private static let failures: [LegFailure.Kind] = [
    .refused, .connectTimeout, .tlsTimeout, .reset, .tls, .certificateName(presented: ["x"]),
    .certificateUntrusted, .certificateExpired, .unreachable, .resolve, .proxy, .other,
  ]

  @Test("every plan is consistent after random calls, probes and waits", arguments: 0..<40 as Range<UInt64>)
  func everyPlanIsSound(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let addresses = (0..<Int.random(in: 1...9, using: &random)).map {
      $0 % 3 == 2 ? ip("2001:db8::\($0)") : IPAddress(v4: 0xc000_0200 + UInt32($0))
    }
    var scene = Scene(addresses, seed: seed)
    var plans: [RoutePlan] = []
    for _ in 0..<500 {
      var options = RequestOptions()
      if Int.random(in: 0..<8, using: &random) == 0 { options.verification = .none }
      if Int.random(in: 0..<8, using: &random) == 0 { options.family = .v6 }
      let plan = scene.plan(options)
      check(plan, addresses, options)
      plans.append(plan)
      // A report may come late, or never.
      let reported = plans[Int.random(in: max(0, plans.count - 4)..<plans.count, using: &random)]
      if Bool.random(using: &random) { scene.call(reported, legs(of: reported, using: &random)) }
      if Int.random(in: 0..<4, using: &random) == 0 {
        probe(addresses[Int.random(in: 0..<addresses.count, using: &random)], in: &scene, using: &random)
      }
      scene.wait(Double.random(in: 0...(Bool.random(using: &random) ? 0.5 : 40), using: &random))
    }
  }

  /// Checks that a plan for a request with these options is consistent. `addresses` are those of the list.
  private func check(_ plan: RoutePlan, _ addresses: [IPAddress], _ options: RequestOptions) {
    #expect(plan.endsInDNS)
    #expect(plan.legs.count { $0.target == .dns } == 1)
    #expect(Set(plan.legs.map(\.target)).count == plan.legs.count)
    for address in plan.lastResorts {
      switch plan.exclusion(of: address) {
      case .failures?, .failureRate?, .resting?, .attemptUnderWay?: break
      case let reason: Issue.record("it follows DNS, although \(reason?.description ?? "it is in the plan")")
      }
    }
    #expect(plan.candidates.map(\.address).sorted() == addresses.sorted())
    let included = plan.candidates.filter { $0.excluded == nil }.map(\.address)
    #expect(included == plan.addresses)
    #expect(plan.directOff == nil)
    #expect(plan.startsTwo == (plan.noneUsable == .circuitsOpen))
    #expect((plan.noneUsable == .excluded) == plan.addresses.isEmpty)
    if plan.startsTwo { #expect(plan.addresses.count == 1) }
    for leg in plan.legs { #expect((.milliseconds(50) ... .seconds(2)).contains(leg.stagger)) }
    if let family = options.family { #expect(plan.addresses.allSatisfy { $0.family == family }) }
  }

  /// Makes the legs of a random call with this plan. In the order of the plan, the listed endpoints that the
  /// plan tries before DNS win, lose, are cancelled or fail. The call ends with the leg that wins. Without a
  /// winner, all of them have a leg.
  private func legs(of plan: RoutePlan, using random: inout SplitMix64) -> [RouteReport.Leg] {
    var legs: [RouteReport.Leg] = []
    var start = 0.0
    for address in plan.addresses {
      let time = Double.random(in: 0...400, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0:
        legs.append(.ready(address, from: start, milliseconds: time))
        return legs
      case 1: legs.append(.ready(address, .lost, from: start, milliseconds: time))
      case 2: legs.append(.cancelled(address, from: start, until: start + time))
      default:
        let kind = Self.failures[Int.random(in: 0..<Self.failures.count, using: &random)]
        legs.append(.failed(address, LegFailure(kind, "failed"), after: time))
      }
      start += time
    }
    return legs
  }

  /// Records a probe with a random result.
  private func probe(_ address: IPAddress, in scene: inout Scene, using random: inout SplitMix64) {
    if Bool.random(using: &random) {
      scene.probe(address, milliseconds: Double.random(in: 0...3000, using: &random))
    } else {
      let kind = Self.failures[Int.random(in: 0..<Self.failures.count, using: &random)]
      scene.probe(address, fails: LegFailure(kind, "failed"))
    }
  }

  /// The planner reuses a plan only while a new plan would be the same.
  @Test("a reused plan has the order and the scores of a new plan", arguments: 0..<20 as Range<UInt64>)
  func reusedPlans(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let addresses = (0..<5).map { IPAddress(v4: 0xc000_0200 + UInt32($0)) }
    var scene = Scene(addresses, seed: seed)
    for _ in 0..<400 {
      if Int.random(in: 0..<3, using: &random) == 0 {
        probe(addresses[Int.random(in: 0..<5, using: &random)], in: &scene, using: &random)
      }
      let status = scene.planner.status(of: scene.origin, at: scene.now)
      let plan = scene.plan()
      if plan.noneUsable == nil {
        #expect(plan.addresses == status.filter { $0.rank != nil }.map(\.endpoint.address))
      }
      let scores = Dictionary(uniqueKeysWithValues: status.map { ($0.endpoint.address, $0.score) })
      for candidate in plan.candidates { #expect(candidate.score == scores[candidate.address]) }
      scene.wait(Double.random(in: 0...3, using: &random))
    }
  }

  @Test(
    "requests use the fastest working endpoint, with at most 20 failed legs in 200 calls",
    arguments: 0..<20 as Range<UInt64>)
  func settlesOnFastest(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let addresses = (0..<6).map { IPAddress(v4: 0xc000_0200 + UInt32($0)) }
    let times = (0..<6).map { Double($0 + 1) * 30 }.shuffled(using: &random)
    let dead = Set(addresses.indices.filter { _ in Bool.random(using: &random) }.prefix(5))
    var scene = Scene(addresses, seed: seed)
    for index in addresses.indices {
      if dead.contains(index) {
        scene.probe(addresses[index], fails: .refused)
      } else {
        scene.probe(addresses[index], milliseconds: times[index])
      }
    }
    let best = addresses.indices.filter { !dead.contains($0) }.min { times[$0] < times[$1] }
    var failed = 0
    for _ in 0..<200 {
      let plan = scene.plan()
      var legs: [RouteReport.Leg] = []
      for address in plan.addresses {
        let index = addresses.firstIndex(of: address) ?? 0
        if !dead.contains(index) {
          legs.append(.ready(address, milliseconds: times[index]))
          #expect(index == best)
          break
        }
        legs.append(.failed(address, .refused))
        failed += 1
      }
      scene.call(plan, legs)
      scene.wait(0.1)
    }
    #expect(failed <= 20)
  }
}
