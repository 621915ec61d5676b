import Testing

@testable import NetOptStorm

/// Response bodies whose readers are slower than the servers.
@Suite struct BackPressureTests {
  /// When a paused HTTP/2 transfer is cancelled, libcurl 7.88.1 keeps its buffered data. libcurl then hands
  /// this data to the next paused transfer of the same easy handle, whose body would have foreign bytes.
  @Test(
    "a slow reader gets its own complete body when other slow readers cancel",
    arguments: ["new.test", "old.test"])
  func slowReaders(_ name: String) async throws {
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
