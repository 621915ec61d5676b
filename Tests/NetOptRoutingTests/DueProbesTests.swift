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
    try scene.waitForProbe()
    #expect(scene.planner.dueProbes(at: scene.now).map(\.address) == [one])
    let givenUp = LegError(LegFailure(.other, "given up"), isCancellation: true)
    scene.planner.record(probe: .failure(givenUp), of: one, for: scene.origin, at: scene.now)
    let givenUpAt = scene.now
    try scene.waitForProbe()
    #expect(scene.now - givenUpAt == .seconds(1))
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
      try scene.waitForProbe()
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
    try scene.waitForProbe()
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
    let probes = try scene.probeWhatIsDue(for: .seconds(4000))
    #expect((1500...2100).contains(probes.count))
  }

  /// However many origins are in use: a thousand with ten endpoints each would come to fifty probes a second.
  @Test func allOriginsTogetherAreProbedFiveTimesASecond() throws {
    var scene = Scene(hosts: 200, endpoints: 10)
    let probes = try scene.probeWhatIsDue(for: .seconds(600))
    #expect((2900...3001).contains(probes.count))
    for (earlier, later) in zip(probes, probes.dropFirst()) {
      #expect(later.moment - earlier.moment >= .milliseconds(200))
    }
    // Whoever has waited longest comes first, so that each of the 2,000 has its turn.
    #expect(Set(probes.prefix(2000).map(\.probe.address)).count > 1900)
    #expect(Set(probes.map(\.probe.address)).count == 2000)
  }

  /// A probe that was asked for too late, since the machine slept, is one probe late and not many at once.
  @Test func whatWasMissedIsNotMadeUpForAtOnce() throws {
    var scene = Scene(hosts: 20, endpoints: 10)
    _ = try scene.probeWhatIsDue(for: .seconds(10))
    scene.wait(250)
    #expect(scene.planner.dueProbes(at: scene.now).count == 1)
    #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
    #expect(scene.planner.nextProbe(after: scene.now) == scene.now + .milliseconds(200))
  }

  /// Whether an endpoint works again is not kept waiting by looks at others.
  @Test func anAttemptIsMadeAtOnceWhateverElseIsDue() throws {
    var scene = Scene(hosts: 20, endpoints: 10)
    _ = try scene.probeWhatIsDue(for: .seconds(400))
    let broken = scene.planner.hosts[7].addresses[3]
    for _ in 0..<3 { scene.probe(broken, of: 7, fails: .refused) }
    let shut = scene.now
    let probes = try scene.probeWhatIsDue(for: .seconds(10), stoppingAt: broken)
    let attempt = try #require(probes.last)
    #expect(attempt.probe.address == broken)
    #expect(scene.planner.status(of: attempt.probe.origin, at: attempt.moment)[9].state == .halfOpen)
    // 5 s with jitter, and nothing on top.
    #expect((.seconds(4) ... .seconds(6)).contains(attempt.moment - shut))
    #expect(probes.dropLast().allSatisfy { $0.probe.address != broken })
  }

  /// The others would only take the place of connections that are in use.
  @Test func onlyWhatRequestsUseIsKept() throws {
    var scene = scene()
    #expect(scene.order() == [one, two])
    var kept: [IPAddress: Set<Bool>] = [:]
    for due in try scene.probeWhatIsDue(for: .seconds(1000)).map(\.probe) {
      kept[due.address, default: []].insert(due.isKept)
    }
    #expect(kept == [one: [true], two: [false]])
    // An endpoint that works again may be one that is not in front; where none is in front, it will be.
    for _ in 0..<3 { scene.probe(two, fails: .refused) }
    var attempt = try scene.probeWhatIsDue(for: .seconds(10), stoppingAt: two).last?.probe
    #expect(attempt?.isKept == false)
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    attempt = try scene.probeWhatIsDue(for: .seconds(10), stoppingAt: one).last?.probe
    #expect(attempt?.isKept == true)
    // Where requests are spread, all are.
    var balanced = Scene([one, two], configuration: RoutingConfiguration(policy: .balanced))
    balanced.probe(one, milliseconds: 20)
    balanced.probe(two, milliseconds: 40)
    let due = try balanced.probeWhatIsDue(for: .seconds(1000)).map(\.probe)
    #expect(Set(due.map(\.address)) == [one, two] && due.allSatisfy(\.isKept))
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

/// A probe that was due.
private struct Taken {
  let probe: DueProbe
  let moment: MonotonicInstant
}

extension Scene {
  /// Several hosts, each with endpoints of its own.
  fileprivate init(hosts: Int, endpoints: Int) {
    self.init([IPAddress]())
    let entries = (0..<hosts).map { host in
      let addresses = (0..<endpoints).map { IPAddress(v4: 0x0a00_0000 + UInt32(host * endpoints + $0)) }
      return ("h\(host).example", HostEntry(port: 443, endpoints: addresses.map { ListedEndpoint($0) }))
    }
    planner = RoutePlanner(list: EndpointList(hosts: Dictionary(uniqueKeysWithValues: entries)), seed: 1)
    // In their order, so that a host has its place.
    for (name, _) in entries { _ = planner.plan(for: Origin(.https, host: name), now: now, wall: today) }
  }

  fileprivate mutating func probe(_ address: IPAddress, of place: Int, fails failure: LegFailure) {
    planner.record(
      probe: .failure(LegError(failure)), of: address, for: planner.hosts[place].origin, at: now)
  }

  /// Goes from probe to probe. All endpoints answer, and requests are sent to all hosts.
  ///
  /// - Parameter last: stops when this one has come.
  fileprivate mutating func probeWhatIsDue(
    for duration: Duration, stoppingAt last: IPAddress? = nil
  ) throws -> [Taken] {
    let end = now + duration
    var taken: [Taken] = []
    var planned: MonotonicInstant?
    while now < end {
      if planned.map({ now - $0 > .seconds(60) }) ?? true {
        for host in planner.list?.hosts.keys ?? [:].keys {
          _ = planner.plan(for: Origin(.https, host: host), now: now, wall: today)
        }
        planned = now
      }
      let before = now
      try waitForProbe()
      // As `Upkeep`: never busy.
      now = max(now, before + .milliseconds(1))
      for due in planner.dueProbes(at: now) {
        taken.append(Taken(probe: due, moment: now))
        if due.address == last { return taken }
        let report = ConnectReport(connect: .milliseconds(10), tls: .milliseconds(10))
        planner.record(probe: .success(report), of: due.address, for: due.origin, at: now)
      }
    }
    return taken
  }
}
