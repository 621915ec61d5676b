import FaultMatrix
import NetOptCore
import Testing

@Suite struct SoakTests {
  @Test(
    "a soak in which single servers fail has no violations"
  )
  func soak() async throws {
    let plan = SoakPlan(seed: 1, length: .seconds(25))
    let report = try await Soak.perform(plan, rate: 60, mostP99: nil)
    #expect(report.violations.isEmpty, "\(report)")
    // Guards against a run that tests nothing.
    #expect(report.inFaults.calls > 300, "\(report)")
  }
}
