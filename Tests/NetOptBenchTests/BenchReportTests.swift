import NetOptBench
import NetOptCore
import Testing

@Suite struct BenchReportTests {
  /// A report of six warm rounds.
  ///
  /// - Parameters:
  ///   - medians: the median of each target, in milliseconds. An address of `nil` is the DNS target. A median
  ///     of `nil` is for a target without samples.
  ///   - choice: the choice of the start-up probe.
  private func report(_ medians: [(IPAddress?, Double?)], choice: IPAddress?) throws -> BenchReport {
    let settings = try Fixtures.settings(medians.compactMap(\.0), dns: medians.contains { $0.0 == nil })
    var report = BenchReport(settings, Fixtures.context)
    report.rounds = [.warm: 6]
    report.choice = choice
    for index in report.targets.indices {
      let median = medians.first { $0.0 == report.targets[index].target.address }?.1
      var series = SampleSeries()
      for _ in 0..<6 {
        guard let median else { continue }
        series.append(Sample(.answered(status: 200), timings: .warm(median, transfer: 0), reused: true))
      }
      report.targets[index].blocks[.warm] = .init(series, order: OrderStatistics())
    }
    return report
  }

  @Test("targets rank by their median, and targets without a median rank last")
  func medianRanking() throws {
    let report = try report(
      [(Fixtures.first, 30), (Fixtures.second, nil), (Fixtures.third, 20), (nil, 25)], choice: nil)
    #expect(report.ranking.map(\.target.id) == ["198.51.100.4", "dns", "203.0.113.7", "203.0.113.9"])
    #expect(report.reference?.target.kind == .dns)
  }

  @Test("regret is the chosen address's median minus the best address's median")
  func regretValue() throws {
    let found = try report(
      [(Fixtures.first, 30), (Fixtures.third, 20), (nil, 1)], choice: Fixtures.first
    ).picker
    #expect(found?.chosen == Fixtures.first)
    #expect(found?.best == Fixtures.third)
    #expect(found?.regret == 10_000)
  }

  @Test("regret is 0 for a choice with the best median")
  func noRegret() throws {
    let found = try report([(Fixtures.first, 20), (Fixtures.third, 20)], choice: Fixtures.third).picker
    #expect(found?.regret == 0)
  }

  @Test("regret is unknown without a median of the chosen address")
  func unknownRegret() throws {
    let found = try report([(Fixtures.first, nil), (Fixtures.third, 20)], choice: Fixtures.first).picker
    #expect(found?.best == Fixtures.third)
    #expect(found?.regret == nil)
    #expect(try report([(nil, 20)], choice: nil).picker == nil)
  }

  @Test("the warm block ranks the targets unless only the cold block has a median")
  func blockForRanking() async throws {
    #expect(try report([(nil, 20)], choice: nil).rankingBlock == .warm)
    #expect(try await Fixtures.interrupted().rankingBlock == .cold)
    #expect(try await Fixtures.dead().rankingBlock == .warm)
  }
}
