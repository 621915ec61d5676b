import Testing

@testable import NetOptStorm

/// Bodies whose readers are slower than their servers.
@Suite struct BackPressureTests {
  /// libcurl 7.88.1 keeps what an HTTP/2 transfer held back when it is given up, and hands it to the next transfer of its easy
  /// handle that is held back.
  @Test(
    "a slow reader gets its own body whole when other slow readers give up",
    arguments: ["new.test", "old.test"])
  func pausedBodiesAreWhole(_ name: String) async throws {
    let host = try #require(StormHost.all.first { $0.name == name })
    let violations = try await QuietRun.violations(of: 400) { plan in
      let number = plan.index
      plan = RequestPlan(index: number, host: host)
      plan.answer.size = 20_000 + 977 * number % 200_000
      plan.answer.framing = number.isMultiple(of: 2) ? .length : .chunked
      plan.answer.pauses = number % 3
      plan.answer.isCompressed = number.isMultiple(of: 5)
      if !number.isMultiple(of: 4) { plan.reading = .slowly(number % 4) }
      if number % 3 == 1 { plan.cancellation = .atByte(1 + plan.answer.size * (number % 7) / 8) }
    } client: {
      $0.connections.bodyBuffer = 16 * 1024
    }
    #expect(violations.counts.isEmpty, "\(violations.text)")
  }
}
