import NetOptCore
import Testing

@testable import NetOptRouting

/// The planner keeps the moment of the next probe (`HostRoutes.nextProbes`) and computes it again only when
/// something changes. The kept moment must never be later than the right one, or a probe would come too late.
@Suite struct DueProbesCacheTests {
  private static let addresses = (0..<4).map { IPAddress(v4: 0xc000_0201 + UInt32($0)) }
  /// Failures of different causes: the endpoint refuses or is silent, its certificate is wrong, or the
  /// network fails.
  private static let failures: [LegFailure] = [
    .refused, LegFailure(.connectTimeout, "no answer"),
    LegFailure(.certificateName(presented: ["other.example"]), "another name"),
    LegFailure(.unreachable, "no route"),
  ]

  @Test(
    "the kept time of the next probe is never later than a newly computed one",
    arguments: 1...40 as ClosedRange<UInt64>)
  func isNeverLate(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var scene = Scene(Self.addresses, seed: seed)
    _ = scene.plan()
    // The number of probes that the planner has handed out.
    var taken = 0
    for step in 0..<400 {
      change(&scene, using: &random)
      let (kept, truth) = dues(of: scene)
      #expect(kept <= truth, "after step \(step), at \(scene.now)")
      if Bool.random(using: &random) { taken += scene.planner.dueProbes(at: scene.now).count }
    }
    #expect(taken > 0)
  }

  /// The moment at which the next probe is due, as the planner has kept it (`kept`) and as it is newly
  /// computed (`truth`). Both are the latest possible moment when no probe is due.
  private func dues(of scene: Scene) -> (kept: MonotonicInstant, truth: MonotonicInstant) {
    // When the first probe of the host is due, not before the present moment of the scene.
    func earliest(_ host: inout HostRoutes) -> MonotonicInstant {
      guard let due = host.nextProbes(at: scene.now) else { return MonotonicInstant(nanoseconds: .max) }
      let first =
        [due.attempt, due.routine?.due].compactMap(\.self).min() ?? MonotonicInstant(nanoseconds: .max)
      // An overdue probe counts as due now.
      return max(first, scene.now)
    }
    var host = scene.planner.hosts[0]
    let kept = earliest(&host)
    host.nextProbes = nil
    return (kept, earliest(&host))
  }

  /// Applies a random event: time passes, a plan is made, a probe or a call ends, the list changes, or the
  /// network changes.
  private func change(_ scene: inout Scene, using random: inout SplitMix64) {
    let address = Self.addresses.randomElement(using: &random) ?? Self.addresses[0]
    let failure = Self.failures.randomElement(using: &random) ?? .refused
    switch Int.random(in: 0..<12, using: &random) {
    case 0: scene.wait(Double.random(in: 0...2, using: &random))
    case 1: scene.wait(Double.random(in: 0...200, using: &random))
    // This wait may be long enough for the origin to fall out of use.
    case 2: scene.wait(Double.random(in: 0...400, using: &random))
    case 3, 4: _ = scene.plan()
    case 5: scene.probe(address, milliseconds: Double.random(in: 1...100, using: &random))
    case 6, 7: for _ in 0..<Int.random(in: 1...3, using: &random) { scene.probe(address, fails: failure) }
    case 8:
      let plan = scene.plan()
      scene.call(plan, [.ready(plan.addresses.first ?? address, milliseconds: 20)])
    case 9:
      let plan = scene.plan()
      scene.call(plan, [.failed(plan.addresses.first ?? address, failure)])
      scene.planner.giveBackAttempt(of: plan, at: scene.now)
    case 10:
      let listed = Self.addresses.filter { _ in Bool.random(using: &random) }.map { ListedEndpoint($0) }
      let entry = HostEntry(endpoints: listed + [ListedEndpoint(address)])
      scene.planner.adopt(EndpointList(hosts: ["a.example": entry]), at: scene.now)
    default: scene.planner.networkChanged(at: scene.now)
    }
  }
}
