import NetOpt
import NetOptCore

/// Requests of one kind at servers that nothing disturbs.
enum QuietRun {
  /// How many requests are under way at once.
  private static let lanes = 20

  /// Performs requests, and returns what is wrong with their answers; that one fails is wrong too, unless its plan says so.
  ///
  /// - Parameters:
  ///   - count: how many.
  ///   - adapt: makes the drawn plans requests of that kind.
  ///   - change: the client's settings.
  static func violations(
    of count: Int, seed: UInt64 = 1, adapt: @escaping @Sendable (inout RequestPlan) -> Void,
    client change: (inout ClientConfiguration) -> Void = { _ in }
  ) async throws -> Violations {
    let generator = RequestGenerator(seed: seed, adapt: adapt)
    let violations = Violations()
    let ledger = Ledger(generator, violations)
    let origins = try await StormOrigins(ledger) { _ in nil }
    defer { origins.stop() }
    var configuration = origins.configuration()
    change(&configuration)
    let client = try NetOptClient(configuration)
    let lateness = try Lateness()
    await withTaskGroup { group in
      for lane in 0..<lanes {
        group.addTask {
          for index in stride(from: lane, to: count, by: lanes) {
            let plan = generator.plan(index)
            let call = StormCall(
              plan: plan, client: client, authority: origins.authority(of: plan.host), generator: generator,
              record: ledger.cache, violations: violations, lateness: lateness)
            let outcome = await call.perform()
            if case .failed(let error) = outcome, !plan.mayFail {
              violations.add(.unexpectedError, "\(error); \(plan)")
            }
          }
        }
      }
    }
    await client.shutdown()
    await lateness.stop()
    return violations
  }
}
