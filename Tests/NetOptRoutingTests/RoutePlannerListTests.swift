import NetOptCore
import Testing

@testable import NetOptRouting

/// What the planner keeps when a new list replaces the list in use.
@Suite struct RoutePlannerListTests {
  private let a = ip("192.0.2.1")
  private let b = ip("192.0.2.2")
  private let c = ip("192.0.2.3")

  /// A list with these endpoints for `a.example`.
  private func list(_ addresses: [IPAddress], serial: Int64 = 2, port: UInt16 = 443) -> EndpointList {
    EndpointList(
      serial: serial,
      hosts: ["a.example": HostEntry(port: port, endpoints: addresses.map { ListedEndpoint($0) })])
  }

  @Test("endpoints that stay in a new list keep their measurements")
  func keptMeasurements() {
    var scene = Scene([a, b])
    scene.probe(a, milliseconds: 80)
    scene.probe(b, milliseconds: 20)
    #expect(scene.order() == [b, a])
    scene.planner.adopt(list([a, c, b]), at: scene.now)
    #expect(scene.planner.list?.serial == 2)
    #expect(scene.order().first == b)
    let statuses = scene.planner.status(of: scene.origin, at: scene.now)
    #expect(statuses.count == 3)
    #expect(statuses.first { $0.endpoint.address == a }?.rtt == .milliseconds(40))
    #expect(statuses.first { $0.endpoint.address == b }?.rtt == .milliseconds(10))
    #expect(statuses.first { $0.endpoint.address == c }?.rtt == nil)
  }

  @Test("a new list keeps circuit breakers and quarantines, also for endpoints that left and return")
  func keptCircuits() {
    var scene = Scene([a, b, c])
    for _ in 0..<3 { scene.probe(a, fails: .refused) }
    scene.probe(b, fails: .wrongName)
    #expect(scene.state(a) == .open)
    #expect(scene.state(b) == .quarantined)
    scene.planner.adopt(list([c, b, a]), at: scene.now)
    #expect(scene.state(a) == .open)
    #expect(scene.state(b) == .quarantined)
    #expect(scene.order() == [c])
    // The planner still knows the state of an endpoint that left the list and comes back.
    scene.planner.adopt(list([c]), at: scene.now)
    #expect(scene.order() == [c])
    scene.planner.adopt(list([a, c]), at: scene.now)
    #expect(scene.state(a) == .open)
  }

  /// The state of an origin with `count` endpoints. Some endpoints have no measurement, and some have failed.
  /// `ranking` and `excluded` are outdated, because nothing called `reassess(_:at:)` after these events.
  private func unassessed(_ count: Int) -> HostRoutes {
    let listed = (0..<count).map { ListedEndpoint(IPAddress(v4: 0x0a00_0000 + UInt32($0))) }
    var routes = HostRoutes(
      Origin(.https, host: "a.example"), listed: listed, configuration: RoutingConfiguration(), seed: 1)
    var random = SplitMix64(seed: 1)
    for index in 0..<count {
      let time = Duration.microseconds(Int.random(in: 1000...200_000, using: &random))
      if index % 7 != 0 {
        _ = routes.endpoints[index].health.succeeded(connect: time, ready: time * 2, at: .at(0))
      }
      for _ in 0..<(index % 5) {
        _ = routes.endpoints[index].health.failed(
          index % 11 == 0 ? .wrongName : .refused, at: .at(0), using: &random)
      }
    }
    return routes
  }

  @Test("assessing all endpoints at once gives the same result as assessing each one alone")
  func assessAllAtOnce() {
    for now in [MonotonicInstant.at(0.1), .at(5), .at(1000)] {
      var all = unassessed(200)
      var single = all
      all.reassessAll(at: now)
      for index in single.endpoints.indices { single.reassess(index, at: now) }
      #expect(all.ranking.entries == single.ranking.entries)
      #expect(all.excluded.map(\.index) == single.excluded.map(\.index))
      #expect(all.excluded.map(\.exclusion) == single.excluded.map(\.exclusion))
      #expect(all.listedLegs == single.listedLegs)
      #expect(all.timed.map(\.index) == single.timed.map(\.index))
      #expect(all.timed.map(\.due) == single.timed.map(\.due))
      #expect(all.reviewDue == single.reviewDue)
    }
  }

  /// The client adopts a list under the lock of the planner. Every request waits for this lock.
  @Test("an origin adopts a list of 10,000 endpoints in less than 2 s")
  func longestList() {
    let old = unassessed(10_000)
    let listed = old.endpoints.reversed().map(\.listed)
    var new: HostRoutes?
    let time = ContinuousClock().measure {
      new = old.listing(listed, configuration: RoutingConfiguration(), seed: 1, at: .at(1))
    }
    #expect((new?.ranking.entries.count ?? 0) + (new?.excluded.count ?? 0) == 10_000)
    #expect(time < .seconds(2))
  }

  @Test("the first endpoint stays first in a new list with another order")
  func leaderAcrossLists() {
    var scene = Scene([a, b])
    scene.probe(a, milliseconds: 20)
    scene.probe(b, milliseconds: 20.5)
    let leader = scene.order()[0]
    for order in [[a, b], [b, a], [c, b, a]] {
      scene.planner.adopt(list(order), at: scene.now)
      #expect(scene.order()[0] == leader)
    }
  }

  @Test("the planner learns from calls whose plans come from the old list")
  func planOfOldList() {
    var scene = Scene([a, b])
    let plan = scene.plan()
    scene.planner.adopt(list([c]), at: scene.now)
    scene.call(plan, [.ready(a, milliseconds: 12), .failed(b, .refused)])
    #expect(scene.order() == [c])
    scene.planner.adopt(list([a, c]), at: scene.now)
    let known = scene.planner.status(of: scene.origin, at: scene.now).first { $0.endpoint.address == a }
    #expect(known?.rtt == .milliseconds(6))
  }

  @Test("a host uses each new list that has it, and the number of unlisted origins stays limited")
  func addedAndRemovedHosts() throws {
    var scene = Scene([a])
    #expect(scene.plan().directOff == nil)
    scene.planner.adopt(nil, at: scene.now)
    #expect(scene.plan().directOff == .noList)
    #expect(scene.plan().legs.map(\.target) == [.dns])
    scene.planner.adopt(list([b], port: 8443), at: scene.now)
    #expect(scene.plan().directOff == .port)
    scene.planner.adopt(list([b]), at: scene.now)
    #expect(scene.plan().directOff == nil)
    #expect(scene.order().first == b)
    // The planner still forgets origins without endpoints when there are too many.
    for index in 0..<2000 {
      let origin = Origin(.https, host: "h\(index).example")
      scene.planner.learned(version: .http1_1, for: origin, options: RequestOptions())
      if index % 500 == 0 { scene.planner.adopt(list([b]), at: scene.now) }
    }
    #expect(scene.planner.hosts.count <= RoutePlanner.mostUnlisted + 1)
    #expect(scene.order().first == b)
  }
}
