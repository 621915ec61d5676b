import NetOptCore
import Testing

@testable import NetOptRouting

/// Another list takes the place of the one in use.
@Suite struct RoutePlannerListTests {
  private let a = ip("192.0.2.1")
  private let b = ip("192.0.2.2")
  private let c = ip("192.0.2.3")

  private func list(_ addresses: [IPAddress], serial: Int64 = 2, port: UInt16 = 443) -> EndpointList {
    EndpointList(
      serial: serial,
      hosts: ["a.example": HostEntry(port: port, endpoints: addresses.map { ListedEndpoint($0) })])
  }

  @Test func whatWasLearntOfTheRemainingEndpointsStays() {
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

  @Test func circuitsAndQuarantineOutliveAList() {
    var scene = Scene([a, b, c])
    for _ in 0..<3 { scene.probe(a, fails: .refused) }
    scene.probe(b, fails: .wrongName)
    #expect(scene.state(a) == .open)
    #expect(scene.state(b) == .quarantined)
    scene.planner.adopt(list([c, b, a]), at: scene.now)
    #expect(scene.state(a) == .open)
    #expect(scene.state(b) == .quarantined)
    #expect(scene.order() == [c])
    // Of an endpoint that went away and comes back it is still known.
    scene.planner.adopt(list([c]), at: scene.now)
    #expect(scene.order() == [c])
    scene.planner.adopt(list([a, c]), at: scene.now)
    #expect(scene.state(a) == .open)
  }

  @Test func theEndpointInUseStaysInUse() {
    var scene = Scene([a, b])
    scene.probe(a, milliseconds: 20)
    scene.probe(b, milliseconds: 20.5)
    let leader = scene.order()[0]
    for order in [[a, b], [b, a], [c, b, a]] {
      scene.planner.adopt(list(order), at: scene.now)
      #expect(scene.order()[0] == leader)
    }
  }

  @Test func plansOfTheOldListAreRecorded() {
    var scene = Scene([a, b])
    let plan = scene.plan()
    scene.planner.adopt(list([c]), at: scene.now)
    scene.call(plan, [.ready(a, milliseconds: 12), .failed(b, .refused)])
    #expect(scene.order() == [c])
    scene.planner.adopt(list([a, c]), at: scene.now)
    let known = scene.planner.status(of: scene.origin, at: scene.now).first { $0.endpoint.address == a }
    #expect(known?.rtt == .milliseconds(6))
  }

  @Test func hostsComeAndGo() throws {
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
    // Origins without endpoints are forgotten as ever when there are too many.
    for index in 0..<2000 {
      let origin = Origin(.https, host: "h\(index).example")
      scene.planner.learned(version: .http1_1, for: origin, options: RequestOptions())
      if index % 500 == 0 { scene.planner.adopt(list([b]), at: scene.now) }
    }
    #expect(scene.planner.hosts.count <= RoutePlanner.mostUnlisted + 1)
    #expect(scene.order().first == b)
  }
}
