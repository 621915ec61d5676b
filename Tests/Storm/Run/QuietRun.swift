import NetOpt
import NetOptCore

/// Sends requests of one kind to the servers of a storm, without disturbances.
enum QuietRun {
  /// The number of concurrent requests.
  private static let lanes = 20

  /// Performs requests over one client, and returns the violations. A failed request is a violation too,
  /// unless its plan explains the failure (`RequestPlan.mayFail`).
  ///
  /// - Parameters:
  ///   - count: the number of requests.
  ///   - seed: the seed from which the plans are drawn.
  ///   - adapt: changes each drawn plan to a request of the wanted kind.
  ///   - change: changes the client's settings.
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
