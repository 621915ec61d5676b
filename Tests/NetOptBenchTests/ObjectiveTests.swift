import NetOptBench
import NetOptCore
import Testing

@Suite struct ObjectiveTests {
  @Test("a list of objectives parses into metrics, limits and texts")
  func parsing() throws {
    let found = try Objective.list("p95<200ms, errors<=1%,max<1.5s,p99.9<900us,mean<3ms")
    // Limits of times are in microseconds. The limit of errors is in millionths.
    #expect(found.map(\.limit) == [200_000, 10_000, 1_500_000, 900, 3_000])
    #expect(found.map(\.includesLimit) == [false, true, false, false, false])
    #expect(found.map(\.metric) == [.percentile(.p95), .errors, .maximum, .percentile(.p999), .mean])
    #expect(found[1].text == "errors<=1%")
  }

  @Test(
    "parsing refuses an invalid objective",
    arguments: [
      "", "p95", "p95<", "p95<200", "p95>200ms", "p42<1s", "errors<1ms", "p95<1%", "p95<-1ms", "p95<1s,",
    ])
  func invalidObjectives(text: String) {
    #expect(throws: Objective.Fault.self) { try Objective.list(text) }
  }

  @Test("each target has a verdict on each objective, and a p99 without enough samples fails")
  func targetVerdicts() async throws {
    var settings = try Fixtures.settings([Fixtures.first], length: .rounds(cold: 0, warm: 80))
    settings.blocks = [.warm]
    settings.objectives = try Objective.list("p50<=24.5ms,p99<1s,errors<1%")
    let report = await Fixtures.report(settings) { request, _ in
      .answer(request, .warm(request.target == "dns" ? 30 : 24))
    }
    #expect(report.verdicts.map(\.isMet) == [true, false, false, false, true, true])
    #expect(report.verdicts.map(\.value) == [24_500, 30_500, nil, nil, 0, 0])
    #expect(report.verdicts[2].reason == "p99 needs 368 samples")
  }

  @Test("failed requests count for the errors objective, and timeouts fail the max objective")
  func failures() async throws {
    var settings = try Fixtures.settings([Fixtures.first], dns: false, length: .rounds(cold: 0, warm: 50))
    settings.blocks = [.warm]
    settings.objectives = try Objective.list("errors<2%,errors<=2%,max<1s")
    let report = await Fixtures.report(settings) { request, number throws(NetOptError) in
      if number == 20 { throw NetOptError(.timeout, phase: .receive, "too slow") }
      return .answer(request)
    }
    #expect(report.verdicts.map(\.isMet) == [false, true, false])
    #expect(report.verdicts[2].reason == "there are timeouts")
  }

  /// When the warm block has no median, the ranking uses the cold block. Objectives on times still use the
  /// warm block.
  @Test("the errors objective counts all blocks, and a percentile objective the warm block")
  func blocksOfObjectives() async throws {
    var settings = try Fixtures.settings([Fixtures.first], dns: false, length: .rounds(cold: 10, warm: 10))
    settings.objectives = try Objective.list("p50<1s,errors<=50%,errors<50%")
    let counted = await Fixtures.report(settings) { request, number throws(NetOptError) in
      // The first request and the 10 cold requests succeed. All other requests fail.
      if number > 10 { throw .leg(.reset, .receiveFailed) }
      return .answer(request, .cold())
    }
    #expect(counted.rankingBlock == .cold)
    #expect(counted.verdicts.map(\.block) == [.warm, nil, nil])
    // 10 of 20 requests failed: 500,000 millionths.
    #expect(counted.verdicts.map(\.value) == [nil, 500_000, 500_000])
    #expect(counted.verdicts.map(\.isMet) == [false, true, false])
  }

  @Test("a percentile objective counts the cold block in a run without a warm block")
  func coldBlock() async throws {
    var settings = try Fixtures.settings([Fixtures.first], dns: false, length: .rounds(cold: 10, warm: 0))
    settings.blocks = [.cold]
    settings.objectives = try Objective.list("p50<1s")
    let report = await Fixtures.report(settings) { request, _ in .answer(request) }
    #expect(report.verdicts.map(\.block) == [.cold] && report.verdicts.map(\.isMet) == [true])
  }
}
