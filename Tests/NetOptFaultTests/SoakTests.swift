import FaultMatrix
import NetOptCore
import Testing

/// Runs a short soak (docs/reliability.md): one server after another fails for a while, and the client sends
/// requests of all kinds at a fixed rate.
@Suite struct SoakTests {
  /// Sends 60 requests a second for 25 s to three servers, of which at least one works at any time. A
  /// violation is a case in which netopt breaks a rule of the soak (`SoakJudge`), for example a failed GET.
  @Test(
    "a soak in which single servers fail has no violations"
  )
  func soak() async throws {
    let plan = SoakPlan(seed: 1, length: .seconds(25))
    let report = try await Soak.perform(plan, rate: 60, mostP99: nil)
    #expect(report.violations.isEmpty, "\(report)")
    // A soak in which few requests meet a fault tests nothing.
    #expect(report.inFaults.calls > 300, "\(report)")
  }
}
