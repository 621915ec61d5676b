import NetOptCore
import Testing

@testable import NetOptRouting

// Requests that are lost with their connections.
extension WaitingRequestTests {
  @Test("a request lost with its connection is taken when a new connection to the endpoint works")
  func lostRequests() {
    var scene = scene()
    #expect(observe(&scene, [waiting(scene, for: 300, delivery: .pending)]).probes.first?.address == Self.a)
    scene.probe(Self.a, milliseconds: 10)
    // The data of the request is not acknowledged, and it is not known yet whether it is lost. So the planner
    // does not take the request, and does not end the suspicion.
    scene.wait(0.3)
    #expect(observe(&scene, [waiting(scene, for: 610, delivery: .pending)]).taken.isEmpty)
    scene.wait(0.1)
    // Only the first request can be taken. The others may not move, have no time left, or were delivered.
    let lost = waiting(scene, for: 710, delivery: .lost)
    let requests = [
      lost, waiting(scene, for: 720, mayMove: false, delivery: .lost),
      waiting(scene, for: 730, deadline: 0.001, delivery: .lost),
      waiting(scene, for: 740, delivery: .acknowledged),
    ]
    let findings = observe(&scene, requests)
    #expect(findings.taken.map(\.position) == [0])
    #expect(findings.taken.first?.failure.message.hasPrefix("its connection is dead") == true)
    #expect(scene.state(Self.a) == .closed)
    // Requests that cannot be taken do not cause repeated probes. The endpoint stays in use.
    #expect(observe(&scene, Array(requests[1...2])).probes.isEmpty)
    #expect(scene.plan().addresses.first == Self.a)
  }

  @Test("a lost request is not taken while no endpoint was seen to work since it was sent")
  func lostWithoutWorkingEndpoint() {
    var scene = scene()
    let lost = waiting(scene, for: 710, delivery: .lost)
    _ = observe(&scene, [lost])
    #expect(observe(&scene, [lost]).taken.isEmpty)
    #expect(scene.plan().addresses.last == Self.a)
  }

  @Test("a lost request is taken when another endpoint works, before a usual time is known")
  func lostRequestsGoElsewhere() {
    var scene = Scene([Self.a, Self.b])
    scene.probe(Self.a, milliseconds: 10)
    scene.probe(Self.b, milliseconds: 40)
    scene.wait(1)
    // Without earlier responses, a response is overdue after 1 s.
    #expect(observe(&scene, [waiting(scene, for: 610, delivery: .pending)]).probes.isEmpty)
    let keeping = waiting(scene, for: 640, mayMove: false, delivery: .lost)
    let requests = [waiting(scene, for: 610, delivery: .lost), keeping]
    let findings = observe(&scene, requests)
    #expect(findings.probes.map(\.address) == [Self.a, Self.b])
    #expect(findings.taken.isEmpty)
    scene.probe(Self.b, milliseconds: 40)
    let taken = observe(&scene, requests).taken
    #expect(taken.map(\.position) == [0] && taken.first?.isUnacknowledged == true)
    #expect(taken.first?.failure.message.hasSuffix("and another endpoint works") == true)
    // The new connection to the endpoint has no result yet. Until it fails, the endpoint's circuit breaker
    // counts nothing.
    #expect(scene.state(Self.a) == .closed)
    #expect(scene.plan().addresses == [Self.b, Self.a])
  }

  @Test("a partly sent request is evidence against its endpoint only when the sent part is lost")
  func lostParts() {
    for delivery in [WaitingRequest.Delivery.acknowledged, .pending, .lost] {
      var scene = scene()
      let part = waiting(scene, for: 710, isWhole: false, mayMove: false, delivery: delivery)
      #expect(observe(&scene, [part]).probes.isEmpty == (delivery != .lost))
      scene.probe(Self.a, fails: LegFailure(.connectTimeout, "no answer"))
      scene.wait(0.001)
      scene.probe(Self.b, milliseconds: 40)
      let findings = observe(&scene, [part])
      #expect(findings.taken.isEmpty)
      #expect(findings.silent.map(\.address) == (delivery == .lost ? [Self.a] : []))
    }
  }

  /// Only a wrong suspicion makes the planner wait longer before the next one. This suspicion was not wrong.
  @Test("a suspicion that ends because requests were lost does not delay the next suspicion")
  func lostRequestsCostNoPatience() {
    var scene = scene()
    _ = observe(&scene, [waiting(scene, for: 300, delivery: .pending)])
    scene.probe(Self.a, milliseconds: 10)
    scene.wait(0.4)
    #expect(observe(&scene, [waiting(scene, for: 710, delivery: .lost)]).taken.count == 1)
    _ = observe(&scene, [])
    scene.wait(0.4)
    #expect(!observe(&scene, [waiting(scene, for: 300)]).probes.isEmpty)
  }
}
