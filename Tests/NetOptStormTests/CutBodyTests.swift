import Testing

@testable import NetOptStorm

/// Response bodies that servers cut off.
@Suite struct CutBodyTests {
  @Test(
    "a body that the server cuts off is an error, with Content-Length and with chunks",
    arguments: ["new.test", "old.test", "goaway.test", "tls12.test"])
  func cutBodies(_ name: String) async throws {
    let host = try #require(StormHost.all.first { $0.name == name })
    let violations = try await QuietRun.violations(of: 400) { plan in
      let number = plan.index
      plan = RequestPlan(index: number, host: host)
      plan.answer.size = 1 + 977 * number % 100_000
      plan.answer.framing = number % 4 == 0 ? .length : .chunked
      plan.answer.pauses = number % 3
      plan.answer.isCompressed = number % 5 == 0
      plan.decompresses = number % 7 != 0
      if number % 3 > 0 { plan.answer.cut = plan.answer.size * (number % 11) / 11 }
      if number % 13 == 1 { plan.cancellation = .atByte(1 + plan.answer.size / 2) }
    }
    #expect(violations.counts.isEmpty, "\(violations.text)")
  }
}
