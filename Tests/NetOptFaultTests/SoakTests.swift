import FaultMatrix
import NetOptCore
import Testing

@Suite struct SoakTests {
  @Test(
    "while a server is whole no request fails that may be repeated, and none that must not be is processed twice"
  )
  func soak() async throws {
    let plan = SoakPlan(seed: 1, length: .seconds(25))
    let report = try await Soak.perform(plan, rate: 60, mostP99: nil)
    #expect(report.violations.isEmpty, "\(report)")
    // Otherwise nothing was tested.
    #expect(report.inFaults.calls > 300, "\(report)")
  }
}
