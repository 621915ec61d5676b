import NetOptCore
import Testing

@testable import NetOptRouting

/// Tests for which endpoints the planner hands out background probes, and when.
@Suite struct DueProbesTests {
  private let one = ip("192.0.2.1")
  private let two = ip("192.0.2.2")

  /// A scene with two endpoints. Probes have measured their ready times: 20 ms for `one`, and 40 ms for
  /// `two`.
  private func scene(_ seed: UInt64 = 1) -> Scene {
    var scene = Scene([one, two], seed: seed)
    scene.probe(one, milliseconds: 20)
    scene.probe(two, milliseconds: 40)
    return scene
  }

  /// A cancelled probe shows nothing about the endpoint. So the probe is repeated, but only after 1 s.
  @Test("a cancelled probe of a half-open endpoint is due again after 1 s")
  func cancelledProbe() throws {
    var scene = scene()
    _ = scene.plan()
    for _ in 0..<3 { scene.probe(one, fails: LegFailure(.refused, "refused")) }
    try scene.waitForProbe()
    #expect(scene.planner.dueProbes(at: scene.now).map(\.address) == [one])
    let givenUp = LegError(LegFailure(.other, "given up"), isInconclusive: true)
    scene.planner.record(probe: .failure(givenUp), of: one, for: scene.origin, at: scene.now)
    let givenUpAt = scene.now
    try scene.waitForProbe()
    #expect(scene.now - givenUpAt == .seconds(1))
  }

  @Test("no probe is due for an origin that is not in use")
  func unusedOrigin() {
    var scene = scene()
    scene.wait(4000)
    #expect(scene.planner.nextProbe(after: scene.now) == nil)
    #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
  }

  @Test(
    "each endpoint of an origin in use is probed every 135 to 225 s",
    arguments: 1...20 as ClosedRange<UInt64>)
  func probeIntervals(_ seed: UInt64) throws {
    var scene = scene(seed)
    _ = scene.plan()
    // When each endpoint was probed.
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

  @Test("an origin is out of use 300 s after its last plan, and back in use without a burst of probes")
  func outOfUse() {
    var scene = scene()
    _ = scene.plan()
    scene.wait(299)
    #expect(scene.planner.nextProbe(after: scene.now) != nil)
    scene.wait(2)
    #expect(scene.planner.nextProbe(after: scene.now) == nil)
    // After an hour all measurements are old. Still, no probe is due at once.
    scene.wait(3600)
    _ = scene.plan()
    #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
    #expect(scene.planner.nextProbe(after: scene.now) != nil)
  }

  @Test("no probe is due for endpoints that requests measure")
  func measuredByRequests() throws {
    var scene = scene()
    _ = scene.plan()
    for _ in 0..<20 {
      scene.wait(100)
      let plan = scene.plan()
      scene.call(plan, [.ready(two, .lost, milliseconds: 40), .ready(one, milliseconds: 20)])
      #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
    }
  }

  @Test("a half-open endpoint is due for one probe, and plans exclude it until the result is known")
  func halfOpenProbe() throws {
    var scene = scene()
    _ = scene.plan()
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
    try scene.waitForProbe()
    #expect(scene.state(one) == .halfOpen)
    #expect(scene.planner.dueProbes(at: scene.now).map(\.address) == [one])
    #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
    // The probe is the one attempt. Plans exclude the endpoint until the result is known.
    #expect(scene.order() == [two])
    scene.probe(one, milliseconds: 20)
    #expect(scene.order() == [one, two])
  }

  @Test("a cancelled probe gives the attempt of a half-open endpoint back to requests")
  func givenBackAttempt() throws {
    var scene = scene()
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    _ = scene.plan()
    scene.wait(6.1)
    #expect(scene.planner.dueProbes(at: scene.now).map(\.address) == [one])
    scene.planner.record(
      probe: .failure(LegError(.refused, isInconclusive: true)), of: one, for: scene.origin, at: scene.now)
    #expect(scene.order() == [one, two])
  }

  @Test("an origin with 1,000 endpoints is probed about every 2 s")
  func longList() throws {
    let addresses = (0..<1000).map { IPAddress(v4: 0xc633_0000 + UInt32($0)) }
    var scene = Scene(addresses)
    let probes = try scene.probeWhatIsDue(for: .seconds(4000))
    #expect((1500...2100).contains(probes.count))
  }

  /// The limit applies to routine probes, whatever the number of origins in use. Without it, 1,000 origins
  /// with ten endpoints each would cause about 55 probes a second.
  @Test("all origins together are probed at most five times a second, and each endpoint has a turn")
  func totalProbeRate() throws {
    var scene = Scene(hosts: 200, endpoints: 10)
    let probes = try scene.probeWhatIsDue(for: .seconds(600))
    #expect((2900...3001).contains(probes.count))
    for (earlier, later) in zip(probes, probes.dropFirst()) {
      #expect(later.moment - earlier.moment >= .milliseconds(200))
    }
    // The endpoint whose probe has been due longest comes first. So each of the 2,000 endpoints has its turn.
    #expect(Set(probes.prefix(2000).map(\.probe.address)).count > 1900)
    #expect(Set(probes.map(\.probe.address)).count == 2000)
  }

  /// The probes that the machine missed while it slept do not all come at once.
  @Test("after a sleep of 250 s, one probe is due at once, and the next one 200 ms later")
  func afterSleep() throws {
    var scene = Scene(hosts: 20, endpoints: 10)
    _ = try scene.probeWhatIsDue(for: .seconds(10))
    scene.wait(250)
    #expect(scene.planner.dueProbes(at: scene.now).count == 1)
    #expect(scene.planner.dueProbes(at: scene.now).isEmpty)
    #expect(scene.planner.nextProbe(after: scene.now) == scene.now + .milliseconds(200))
  }

  /// The one attempt of a half-open circuit breaker is a probe that shows whether the endpoint works again.
  /// Due routine probes do not delay it.
  @Test("the probe of a half-open endpoint comes at once, whatever background probes are due")
  func attemptComesFirst() throws {
    var scene = Scene(hosts: 20, endpoints: 10)
    _ = try scene.probeWhatIsDue(for: .seconds(400))
    let broken = scene.planner.hosts[7].addresses[3]
    for _ in 0..<3 { scene.probe(broken, of: 7, fails: .refused) }
    // When the circuit breaker opened.
    let shut = scene.now
    let probes = try scene.probeWhatIsDue(for: .seconds(10), stoppingAt: broken)
    let attempt = try #require(probes.last)
    #expect(attempt.probe.address == broken)
    // The status lists excluded endpoints last. The host has ten endpoints.
    #expect(scene.planner.status(of: attempt.probe.origin, at: attempt.moment)[9].state == .halfOpen)
    // The attempt comes right after the open time, which is 5 s with jitter.
    #expect((.seconds(4) ... .seconds(6)).contains(attempt.moment - shut))
    #expect(probes.dropLast().allSatisfy { $0.probe.address != broken })
  }

  /// The pool keeps the connection of a probe only if requests are likely to use it. Other connections would
  /// only displace those in use.
  @Test("a probe's connection is kept only at endpoints that requests use")
  func keptConnections() throws {
    var scene = scene()
    #expect(scene.order() == [one, two])
    var kept: [IPAddress: Set<Bool>] = [:]
    for due in try scene.probeWhatIsDue(for: .seconds(1000)).map(\.probe) {
      kept[due.address, default: []].insert(due.keepsConnection)
    }
    #expect(kept == [one: [true], two: [false]])
    // Requests try `one` first, so the connection of the probe that tests `two` is not kept. When no endpoint
    // is usable, requests will use the first one that works again, so the connection of its probe is kept.
    for _ in 0..<3 { scene.probe(two, fails: .refused) }
    var attempt = try scene.probeWhatIsDue(for: .seconds(10), stoppingAt: two).last?.probe
    #expect(attempt?.keepsConnection == false)
    for _ in 0..<3 { scene.probe(one, fails: .refused) }
    attempt = try scene.probeWhatIsDue(for: .seconds(10), stoppingAt: one).last?.probe
    #expect(attempt?.keepsConnection == true)
    // The policy `balanced` spreads requests over all endpoints, so all connections are kept.
    var balanced = Scene([one, two], configuration: RoutingConfiguration(policy: .balanced))
    balanced.probe(one, milliseconds: 20)
    balanced.probe(two, milliseconds: 40)
    let due = try balanced.probeWhatIsDue(for: .seconds(1000)).map(\.probe)
    #expect(Set(due.map(\.address)) == [one, two] && due.allSatisfy(\.keepsConnection))
  }

  /// The client itself makes some requests, for example to look for a newer list. They do not count as use of
  /// the origin, so they cause no probes.
  @Test("a plan for a request of the client itself does not count as use and causes no probes")
  func planWithoutUse() {
    var scene = scene()
    let plan = scene.planner.plan(for: scene.origin, countsAsUse: false, now: scene.now, wall: today)
    #expect(plan.addresses == [one, two])
    #expect(!scene.planner.isUsed)
    #expect(scene.planner.hostsInUse(at: scene.now).isEmpty)
    #expect(scene.planner.nextProbe(after: scene.now) == nil)
    _ = scene.plan()
    #expect(scene.planner.hostsInUse(at: scene.now) == ["a.example"])
    // Such a plan does not prolong the use of an origin either.
    scene.wait(299)
    _ = scene.planner.plan(for: scene.origin, countsAsUse: false, now: scene.now, wall: today)
    #expect(scene.planner.nextProbe(after: scene.now) != nil)
    scene.wait(2)
    #expect(scene.planner.nextProbe(after: scene.now) == nil)
    #expect(scene.planner.hostsInUse(at: scene.now).isEmpty)
  }
}

/// A probe that the planner has handed out, and when.
private struct Taken {
  let probe: DueProbe
  let moment: MonotonicInstant
}

extension Scene {
  /// A scene with the hosts `h0.example`, `h1.example` and so on, each with its own endpoints. All hosts are
  /// in use.
  fileprivate init(hosts: Int, endpoints: Int) {
    self.init([IPAddress]())
    let entries = (0..<hosts).map { host in
      let addresses = (0..<endpoints).map { IPAddress(v4: 0x0a00_0000 + UInt32(host * endpoints + $0)) }
      return ("h\(host).example", HostEntry(port: 443, endpoints: addresses.map { ListedEndpoint($0) }))
    }
    planner = RoutePlanner(list: EndpointList(hosts: Dictionary(uniqueKeysWithValues: entries)), seed: 1)
    // The plans are made in order, so that `hosts[n]` of the planner is the host `hn.example`.
    for (name, _) in entries { _ = planner.plan(for: Origin(.https, host: name), now: now, wall: today) }
  }

  /// Records a failed probe of an endpoint.
  ///
  /// - Parameter hostIndex: the index of the host in the planner.
  fileprivate mutating func probe(_ address: IPAddress, of hostIndex: Int, fails failure: LegFailure) {
    planner.record(
      probe: .failure(LegError(failure)), of: address, for: planner.hosts[hostIndex].origin, at: now)
  }

  /// Moves the clock on by a duration, and takes all probes that become due. Each probe succeeds. A plan for
  /// each host every 60 s keeps all hosts in use.
  ///
  /// - Parameter last: the address at which to stop: the function returns when it has taken a probe of this
  ///   address, without a result of that probe.
  /// - Returns: the probes, in the order in which they were taken.
  fileprivate mutating func probeWhatIsDue(
    for duration: Duration, stoppingAt last: IPAddress? = nil
  ) throws -> [Taken] {
    let end = now + duration
    var taken: [Taken] = []
    // When the last plans were made.
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
      // Waits at least 1 ms, as `BackgroundProbes` does, so that it never runs a busy loop.
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
