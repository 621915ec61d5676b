import NetOptBench
import NetOptCore
import Testing

@Suite struct BenchWarningTests {
  /// Returns the warnings of a run of one target.
  ///
  /// - Parameters:
  ///   - rounds: the number of warm rounds.
  ///   - cold: the number of cold rounds.
  ///   - timings: makes the timings of a request. Gets the number of the request in the run, from 0, and
  ///     whether the request opens a new connection.
  private func warnings(
    rounds: Int = 80, cold: Int = 0, _ timings: @escaping @Sendable (Int, Bool) -> Timings
  ) async throws -> [BenchWarning] {
    let settings = try Fixtures.settings(
      [Fixtures.first], dns: false, length: .rounds(cold: cold, warm: rounds))
    return await Fixtures.report(settings) { request, number in
      .answer(request, timings(number, request.options.connection == .fresh))
    }.warnings
  }

  @Test("a run warns when the network becomes slower, and not about steady noise")
  func drift() async throws {
    let found = try await warnings { number, _ in
      .warm(20 + Double(number) / 20 + Double(number * 7 % 5) / 10)
    }
    #expect(found.map(\.code) == ["drift"])
    #expect(found[0].text.contains("longer at the end"))
    let steady = try await warnings { number, _ in .warm(20 + Double(number * 7 % 5)) }
    #expect(steady.isEmpty)
  }

  @Test("a run warns about a slow first sample, and suggests --warmup only for the warm block")
  func slowFirstSample() async throws {
    // A first request and two warm-up requests come before the samples.
    let found = try await warnings { number, _ in .warm(number == 3 ? 500 : 20) }
    #expect(found.map(\.code) == ["first-sample-slow"])
    #expect(found[0].text.contains("--warmup"))
    // The cold block has no warm-up that could be longer.
    let cold = try await warnings(rounds: 8, cold: 8) { number, isCold in
      isCold ? .cold(wait: number == 1 ? 500 : 20) : .warm(20)
    }
    #expect(cold.map(\.code) == ["first-sample-slow"])
    #expect(cold[0].text.contains("first cold sample") && !cold[0].text.contains("--warmup"))
  }

  @Test("a run warns when the TLS handshake is far longer than the TCP handshake")
  func middlebox() async throws {
    let near = try await warnings(rounds: 8, cold: 8) { _, isCold in
      isCold ? .cold(tcp: 1, tls: 60, wait: 50) : .warm(50)
    }
    #expect(near.map(\.code) == ["middlebox"])
    // TLS 1.2 takes two round trips.
    let usual = try await warnings(rounds: 8, cold: 8) { _, isCold in
      isCold ? .cold(tcp: 25, tls: 55, wait: 25) : .warm(25)
    }
    #expect(usual.isEmpty)
  }

  @Test("a closed loop warns when the client uses all processor time, and an open loop does not")
  func busyClient() async throws {
    var settings = try Fixtures.settings([Fixtures.first], dns: false, length: .rounds(cold: 0, warm: 400))
    func busyRun() async -> BenchReport {
      let client = FakeBenchClient { request, _ in .answer(request, .warm(20)) }
      return await BenchRun(
        settings, clients: [client], clock: client,
        // The process uses all of the time that the fake clock shows.
        cpuTime: { .nanoseconds(client.now().nanoseconds) }
      ).report(Fixtures.context)
    }
    #expect(await busyRun().warnings.map(\.code) == ["client-busy"])
    // In an open loop, the client keeps a processor busy while it waits for the moment of the next request.
    // So its processor time says nothing.
    settings.rate = 40
    let open = await busyRun()
    #expect(open.elapsed >= .seconds(5))
    #expect(!open.warnings.contains { $0.code == "client-busy" })
  }
}
