import NetOptCore
import Testing

@testable import NetOptRouting

/// When endpoints are probed in the background.
@Suite struct DueProbesTests {
  private let one = ip("192.0.2.1")
  private let two = ip("192.0.2.2")

  private func scene(_ seed: UInt64 = 1) -> Scene {
    var scene = Scene([one, two], seed: seed)
    scene.probe(one, milliseconds: 20)
    scene.probe(two, milliseconds: 40)
    return scene
  }

  /// A probe that was given up shows nothing; it is made again, but not at once.
  @Test func aProbeThatWasGivenUpIsNotDueAtOnce() throws {
    var scene = scene()
    _ = scene.plan()
    for _ in 0..<3 { scene.probe(one, fails: LegFailure(.refused, "refused")) }
    scene.now = try #require(scene.planner.nextProbe(after: scene.now))
    #expect(scene.planner.dueProbes(at: scene.now).map(\.address) == [one])
    let givenUp = LegError(LegFailure(.other, "given up"), isCancellation: true)
    scene.planner.record(probe: .failure(givenUp), of: one, for: scene.origin, at: scene.now)
    let next = try #require(scene.planner.nextProbe(after: scene.now))
    #expect(next - scene.now == .seconds(1))
  }

  @Test func nothingIsDueOfAnOriginThatIsNotInUse() {
    var scene = scene()
    scene.wait(4000)
    #expect(scene.planner.nextProbe(after: scene.now) == nil)
    #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func eachEndpointIsDueEveryFewMinutes(_ seed: UInt64) throws {
    var scene = scene(seed)
    _ = scene.plan()
    var taken: [IPAddress: [MonotonicInstant]] = [:]
    for _ in 0..<12 {
      scene.now = try #require(scene.planner.nextProbe(after: scene.now))
      let due = scene.planner.dueProbes(at: scene.now)
      #expect(!due.isEmpty && due.allSatisfy { $0.origin == scene.origin })
      #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
      for probe in due {
        taken[probe.address, default: []].append(scene.now)
        scene.probe(probe.address, milliseconds: 30)
      }
      _ = scene.plan()
    }
    for moments in taken.values {
      for (earlier, later) in zip(moments, moments.dropFirst()) {
        #expect((.seconds(135) ... .seconds(225)).contains(later - earlier))
      }
    }
    #expect(taken.count == 2)
  }

  @Test func anOriginFallsOutOfUse() {
    var scene = scene()
    _ = scene.plan()
    scene.wait(299)
    #expect(scene.planner.nextProbe(after: scene.now) != nil)
    scene.wait(2)
    #expect(scene.planner.nextProbe(after: scene.now) == nil)
    // After an hour everything is old, and yet not everything is probed at once.
    scene.wait(3600)
    _ = scene.plan()
    #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
    #expect(scene.planner.nextProbe(after: scene.now) != nil)
  }

  @Test func whatRequestsMeasureNeedsNoProbe() throws {
    var scene = scene()
    _ = scene.plan()
    for _ in 0..<20 {
      scene.wait(100)
      let plan = scene.plan()
      scene.call(plan, [.ready(two, .lost, milliseconds: 40), .ready(one, milliseconds: 20)])
      #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
    }
  }

  @Test func aHalfOpenCircuitIsDueAtOnceAndOnce() throws {
    var scene = scene()
    _ = scene.plan()
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
    scene.now = try #require(scene.planner.nextProbe(after: scene.now))
    #expect(scene.state(one) == .halfOpen)
    #expect(scene.planner.dueProbes(at: scene.now).map(\.address) == [one])
    #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
    // The probe is the one attempt: requests leave the endpoint out until its outcome is known.
    #expect(scene.order() == [two])
    scene.probe(one, milliseconds: 20)
    #expect(scene.order() == [one, two])
  }

  @Test func aProbeThatWasCancelledGivesItsAttemptBack() throws {
    var scene = scene()
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    _ = scene.plan()
    scene.wait(6.1)
    #expect(scene.planner.dueProbes(at: scene.now).map(\.address) == [one])
    scene.planner.record(
      probe: .failure(LegError(.refused, isCancellation: true)), of: one, for: scene.origin, at: scene.now)
    #expect(scene.order() == [one, two])
  }

  @Test func aLongListIsProbedAtMostEveryTwoSeconds() throws {
    let addresses = (0..<1000).map { IPAddress(v4: 0xc633_0000 + UInt32($0)) }
    var scene = Scene(addresses)
    var probes = 0
    for _ in 0..<400 {
      _ = scene.plan()
      scene.wait(10)
      let due = scene.planner.dueProbes(at: scene.now)
      probes += due.count
      for probe in due { scene.probe(probe.address, milliseconds: 20) }
    }
    // Over 4000 s.
    #expect((1500...2100).contains(probes))
  }

  /// What a client does for itself, such as looking for a newer list, keeps no probe going.
  @Test func aPlanThatIsNoUseHasNothingProbed() {
    var scene = scene()
    let plan = scene.planner.plan(for: scene.origin, isUse: false, now: scene.now, wall: today)
    #expect(plan.addresses == [one, two])
    #expect(!scene.planner.isUsed)
    #expect(scene.planner.hostsInUse(at: scene.now).isEmpty)
    #expect(scene.planner.nextProbe(after: scene.now) == nil)
    _ = scene.plan()
    #expect(scene.planner.hostsInUse(at: scene.now) == ["a.example"])
    // Nor does it make the use last longer.
    scene.wait(299)
    _ = scene.planner.plan(for: scene.origin, isUse: false, now: scene.now, wall: today)
    #expect(scene.planner.nextProbe(after: scene.now) != nil)
    scene.wait(2)
    #expect(scene.planner.nextProbe(after: scene.now) == nil)
    #expect(scene.planner.hostsInUse(at: scene.now).isEmpty)
  }
}
