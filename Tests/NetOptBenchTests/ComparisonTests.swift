import NetOptBench
import NetOptCore
import Testing

@Suite struct ComparisonTests {
  /// A run of warm rounds. A response takes the time of its target, noise that all targets share in a round,
  /// and a little noise of its own.
  ///
  /// - Parameters:
  ///   - times: the time of each target, in milliseconds. The key `nil` is the DNS target.
  ///   - noise: the scale of the noise that the targets share, in milliseconds.
  ///   - change: changes the settings of the run.
  static func run(
    _ times: [IPAddress?: Double], rounds: Int = 80, noise: Double = 3,
    change: (inout BenchSettings) -> Void = { _ in }
  ) async throws -> BenchReport {
    var settings = try Fixtures.settings(
      times.keys.compactMap { $0 }.sorted { "\($0)" < "\($1)" }, dns: times.keys.contains(nil),
      length: .rounds(cold: 0, warm: rounds))
    settings.blocks = [.warm]
    change(&settings)
    var generator = Noise(seed: 42)
    let common = (0..<rounds + 10).map { _ in abs(generator.normal()) * noise }
    let own = (0..<(rounds + 10) * 8).map { _ in generator.normal() * 0.5 }
    let table = Dictionary(uniqueKeysWithValues: times.map { ($0.key?.description ?? "dns", $0.value) })
    let names = table.keys.sorted()
    return await Fixtures.report(settings) { request, number in
      let index = names.firstIndex(of: request.target) ?? 0
      let time = (table[request.target] ?? 0) + common[number] + own[number * 8 + index]
      return .answer(request, .warm(time, transfer: 0))
    }
  }

  @Test("targets without a significant difference share a rank")
  func sharedRank() async throws {
    let report = try await Self.run([Fixtures.first: 20, Fixtures.second: 20, nil: 30])
    #expect(report.ranks.map(\.rank) == [1, 1, 3])
    #expect(report.ranks.map(\.isShared) == [true, true, false])
    #expect(report.comparison(of: "203.0.113.7")?.isSignificant == true)
    #expect(report.comparison(of: "203.0.113.9")?.isSignificant == true)
  }

  @Test("a comparison finds a shift under noise that all targets share")
  func sharedNoise() async throws {
    let report = try await Self.run([Fixtures.first: 20, nil: 21], noise: 20)
    let found = try #require(report.comparison(of: "203.0.113.7"))
    #expect(abs(found.shift + 1000) < 200)
    #expect(found.interval.contains(-1000))
    #expect(found.isSignificant && found.adjusted < 0.001 && found.rounds == 80)
  }

  @Test("a shift below the minimum effect is not significant, however small its p value")
  func tooSmallShift() async throws {
    let times: [IPAddress?: Double] = [Fixtures.first: 100, nil: 100.6]
    let report = try await Self.run(times, noise: 0)
    let found = try #require(report.comparison(of: "203.0.113.7"))
    #expect(found.adjusted < 0.05 && !found.isSignificant)
    #expect(report.ranks.map(\.rank) == [1, 1])
    let strict = try await Self.run(times, noise: 0) { $0.minimumEffect = 0 }
    #expect(strict.comparison(of: "203.0.113.7")?.isSignificant == true)
  }

  @Test("comparisons use the reference from the settings")
  func chosenReference() async throws {
    let report = try await Self.run([Fixtures.first: 20, Fixtures.second: 25, nil: 30]) {
      $0.reference = Fixtures.second.description
    }
    #expect(report.reference?.target.address == Fixtures.second)
    #expect((report.comparison(of: "dns")?.shift ?? 0) > 4000)
    #expect((report.comparison(of: "203.0.113.7")?.shift ?? 0) < -4000)
  }

  @Test("a report compares p95 and p99 only with enough rounds")
  func tails() async throws {
    let few = try await Self.run([Fixtures.first: 20, nil: 30], rounds: 50)
    #expect(few.comparison(of: "203.0.113.7", at: .p95) == nil)
    let many = try await Self.run([Fixtures.first: 20, nil: 30], rounds: 400)
    #expect(many.comparison(of: "203.0.113.7", at: .p95)?.isSignificant == true)
    #expect(many.comparison(of: "203.0.113.7", at: .p99)?.method == "bootstrap of rounds")
  }

  @Test("a timeout counts as the longest response, and other failures drop their round")
  func timeouts() async throws {
    var settings = try Fixtures.settings([Fixtures.first], length: .rounds(cold: 0, warm: 40))
    settings.blocks = [.warm]
    let report = await Fixtures.report(settings) { request, number throws(NetOptError) in
      if request.target != "dns", number % 2 == 1 { throw NetOptError(.timeout, phase: .receive, "too slow") }
      if request.target == "dns", number == 30 { throw .leg(.reset, .receiveFailed) }
      return .answer(request, .warm(request.target == "dns" ? 30 + Double(number % 3) : 29))
    }
    let found = try #require(report.comparison(of: "203.0.113.7"))
    // The round of the reset connection does not count.
    #expect(found.rounds == 39)
    // Half of the requests to the address timed out. It is not the faster target, although its other
    // responses are faster.
    #expect(!(found.isSignificant && found.shift < 0))
  }

  @Test("the verdict says which target wins, or that no target beats dns")
  func verdictText() async throws {
    let direct = try await Self.run([Fixtures.first: 20, Fixtures.second: 20, nil: 30])
    #expect(TextReport(direct).text.contains("VERDICT direct beats dns by "))
    let dns = try await Self.run([Fixtures.first: 40, Fixtures.second: 35, nil: 30])
    #expect(TextReport(dns).text.contains("VERDICT dns beats all others by "))
    let tie = try await Self.run([Fixtures.first: 30, nil: 30])
    #expect(TextReport(tie).text.contains("VERDICT no target beats dns"))
    let none = try await Self.run([Fixtures.first: 20, Fixtures.second: 30])
    #expect(TextReport(none).text.contains("VERDICT 203.0.113.7 is the fastest"))
  }

  @Test("a report without a difference says how many rounds would find one")
  func neededRounds() async throws {
    let report = try await Self.run([Fixtures.first: 20, nil: 20], noise: 0)
    #expect(TextReport(report).text.contains("rounds would detect a shift of"))
  }
}
