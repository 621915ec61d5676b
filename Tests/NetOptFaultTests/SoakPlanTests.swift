import FaultMatrix
import NetOptCore
import Testing

/// Tests the plans of soaks (docs/reliability.md): which server has which fault and when, and which requests
/// are sent.
@Suite struct SoakPlanTests {
  @Test(
    "a plan always leaves one server without a fault, and all faults end within the soak",
    arguments: 1...200)
  func oneIsWhole(_ seed: UInt64) {
    let plan = SoakPlan(seed: seed, length: .seconds(Int(30 + seed)))
    #expect(!plan.incidents.isEmpty)
    for incident in plan.incidents {
      #expect(incident.start < incident.end && incident.end <= plan.length)
      // All incidents that overlap this one, and this one itself.
      let others = plan.incidents.filter { $0.start < incident.end && incident.start < $0.end }
      // The number of servers with a fault grows only when a fault starts, so the starts are the only moments
      // to check.
      let atStart = others.filter { $0.start <= incident.start }
      #expect(Set(atStart.map(\.server)).count < SoakPlan.servers, "\(plan.incidents)")
      // A server has one fault at a time.
      #expect(others.filter { $0.server == incident.server }.count == 1)
    }
  }

  @Test("a seed always draws the same faults and requests, another seed draws others")
  func seedDeterminesPlan() {
    let (one, again, other) = (plan(1), plan(1), plan(2))
    #expect(one.digest == again.digest && one.digest != other.digest)
    #expect(one.incidents.map(\.description) == again.incidents.map(\.description))
    #expect((0..<500).map { one.ask($0) } == (0..<500).map { again.ask($0) })
    #expect((0..<500).map { one.ask($0) } != (0..<500).map { other.ask($0) })
  }

  @Test("a ten-minute plan has every suitable fault, every server, and all requests in both HTTP versions")
  func hasAll() {
    let plan = SoakPlan(seed: 1, length: .seconds(600))
    let suiting = Set(Fault.all.filter(SoakPlan.suits).map(\.name))
    #expect(suiting.count > 15)
    #expect(Set(plan.incidents.map(\.fault.name)) == suiting)
    #expect(Set(plan.incidents.map(\.server)) == Set(0..<SoakPlan.servers))
    let asks = Set((0..<2000).map { "\(plan.ask($0))" })
    #expect(asks.count == Traffic.allCases.count * 2)
  }

  /// A plan for a soak of one minute.
  private func plan(_ seed: UInt64) -> SoakPlan { SoakPlan(seed: seed, length: .seconds(60)) }
}
