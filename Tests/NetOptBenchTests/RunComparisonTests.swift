import NetOptCore
import TestTools
import Testing

@testable import NetOptBench

@Suite struct RunComparisonTests {
  /// A saved run of warm rounds of one address.
  ///
  /// - Parameters:
  ///   - wait: the response time without noise, in milliseconds. The noise is 0 to 0.39 ms.
  ///   - alpha: the significance level in the settings of the run.
  ///   - fails: gets the number of a measured request, from 0. Returns the error of the request; `nil` when
  ///     it succeeds.
  private static func run(
    rounds: Int = 80, wait: Double = 20, alpha: Double = 0.05,
    fails: @escaping @Sendable (Int) -> NetOptError? = { _ in nil }
  ) async throws -> SavedRun {
    var settings = try Fixtures.settings([Fixtures.first], dns: false, length: .rounds(cold: 0, warm: rounds))
    settings.blocks = [.warm]
    settings.alpha = alpha
    let report = await Fixtures.report(settings) { request, number throws(NetOptError) in
      // The first request and the warm-up requests always succeed.
      if number > 2, let error = fails(number - 3) { throw error }
      return .answer(request, .warm(wait + Double(number * 37 % 40) / 100, transfer: 0))
    }
    return try SavedRun(JSONReport(report).value.bytes())
  }

  private static func compare(_ before: SavedRun, _ after: SavedRun, alpha: Double = 0.05) -> RunComparison {
    RunComparison(before, after, alpha: alpha, minimumEffect: 0.01)
  }

  private static let timeout = NetOptError(.timeout, phase: .receive, "too slow")

  @Test("a target that lost all responses is a regression, and one that gained them is not")
  func deadServer() async throws {
    let before = try await Self.run()
    let after = try await Self.run { _ in .leg(.reset, .receiveFailed) }
    let found = Self.compare(before, after)
    #expect(found.hasRegression && found.entries.isEmpty && found.missing.isEmpty)
    #expect(found.lost.map(\.id) == ["203.0.113.7"])
    #expect(found.lost.first?.reason == "0 of 80 requests were answered")
    #expect(found.failures.first?.isSignificant == true && found.failures.first?.isWorse == true)
    #expect(
      found.text.contains("LOST    203.0.113.7: p50 20.2 ms before (warm), none after: 0 of 80 requests"))
    #expect(
      found.json.description.contains(#""lost":[{"target":"203.0.113.7","block":"warm","before_us":20"#))
    // In the opposite direction no target lost its median.
    let back = Self.compare(after, before)
    #expect(!back.hasRegression && back.missing == ["203.0.113.7"] && back.failures[0].isSignificant)
  }

  @Test("a target whose requests mostly time out is a regression")
  func manyTimeouts() async throws {
    let after = try await Self.run { $0 % 5 == 0 ? nil : Self.timeout }
    let found = Self.compare(try await Self.run(), after)
    #expect(found.hasRegression)
    #expect(found.lost.map(\.reason) == ["16 of 80 requests were answered, 64 timed out"])
  }

  @Test("a target that the second run excludes is a regression")
  func excludedTarget() async throws {
    let settings = try Fixtures.settings([Fixtures.first], dns: false)
    let dead = await Fixtures.report(settings) { _, _ throws(NetOptError) in throw .leg(.refused) }
    let found = Self.compare(try await Self.run(), try SavedRun(JSONReport(dead).value.bytes()))
    #expect(found.hasRegression && found.lost.map(\.reason) == ["connect: refused"])
    #expect(found.failures.isEmpty)
  }

  /// A run on a host without IPv6 says nothing about IPv6 addresses.
  @Test("a target that the second host has no route to is missing and not lost")
  func unreachableTarget() async throws {
    let settings = try Fixtures.settings([Fixtures.first], dns: false)
    let far = await Fixtures.report(settings) { _, _ throws(NetOptError) in throw .leg(.unreachable) }
    let found = Self.compare(try await Self.run(), try SavedRun(JSONReport(far).value.bytes()))
    #expect(!found.hasRegression && found.lost.isEmpty && found.missing == ["203.0.113.7"])
  }

  /// 36 of 80 requests time out. So the median is known, but the upper end of its interval is not, and the
  /// medians are not compared. The test of failures judges this target.
  @Test("a target whose interval ends among timeouts is not lost, but its failures are a regression")
  func openInterval() async throws {
    let after = try await Self.run { $0 % 20 < 9 ? Self.timeout : nil }
    let found = Self.compare(try await Self.run(), after)
    #expect(found.lost.isEmpty && found.missing == ["203.0.113.7"])
    #expect(found.failures.map(\.after.count) == [36] && found.hasRegression)
  }

  @Test("a target with too few requests in the second run is missing and not lost")
  func fewRequests() async throws {
    let found = Self.compare(try await Self.run(), try await Self.run(rounds: 3))
    #expect(!found.hasRegression && found.lost.isEmpty && found.missing == ["203.0.113.7"])
  }

  @Test("significantly more failures are a regression at an unchanged median, one more is not")
  func moreFailures() async throws {
    let before = try await Self.run()
    let after = try await Self.run { $0 % 8 == 0 ? .leg(.reset, .receiveFailed) : nil }
    let found = Self.compare(before, after)
    #expect(found.entries.count == 1 && !found.entries[0].isSignificant && found.lost.isEmpty)
    #expect(found.failures.map(\.after.count) == [10] && found.hasRegression)
    #expect(found.text.contains("FAILED  203.0.113.7: 0 of 80 requests before, 10 of 80 after, more (p"))
    #expect(!Self.compare(after, before).hasRegression)
    let single = try await Self.run { $0 == 8 ? .leg(.reset, .receiveFailed) : nil }
    #expect(!Self.compare(before, single).hasRegression)
    #expect(!Self.compare(before, before).hasRegression && Self.compare(before, before).failures.isEmpty)
  }

  @Test("a smaller alpha gives a wider interval, close to the interval of runs with that alpha")
  func smallerAlpha() async throws {
    let (before, after) = (try await Self.run(), try await Self.run(wait: 25))
    let (usual, strict) = (Self.compare(before, after), Self.compare(before, after, alpha: 0.001))
    #expect(usual.entries[0].before == strict.entries[0].before)
    let widths = [usual, strict].map { $0.entries[0].interval }.map { $0.upperBound - $0.lowerBound }
    #expect(widths[1] > widths[0] * 1.2, "\(widths)")
    // `own` compares runs with that alpha in their settings. Their files contain intervals of exact values.
    // The interval of `strict` is from the histograms, whose values have three digits.
    let own = Self.compare(
      try await Self.run(alpha: 0.001), try await Self.run(wait: 25, alpha: 0.001), alpha: 0.001)
    let interval = strict.entries[0].interval
    #expect(abs(own.entries[0].interval.lowerBound - interval.lowerBound) < 40)
    #expect(abs(own.entries[0].interval.upperBound - interval.upperBound) < 40)
  }

  @Test("a comparison says when a run lacks its serial dependence, and a merged run then lacks it too")
  func unknownDependence() async throws {
    let run = try await Self.run()
    var old = run
    old.targets[0].blocks[.warm]?.dependence = nil
    #expect(!Self.compare(run, run).assumesIndependence)
    let found = Self.compare(old, run)
    #expect(found.assumesIndependence && found.text.contains("count as independent"))
    #expect(found.json.description.contains("\"dependence_known\":false"))
    // A merged run lacks the serial dependence if one of its runs lacks it.
    var sum = MergedRun(run)
    try sum.add(run)
    #expect(sum.run.targets[0].blocks[.warm]?.dependence != nil)
    try sum.add(old)
    #expect(sum.run.targets[0].blocks[.warm]?.dependence == nil)
  }

  @Test("reading a saved run fails when its histograms have too many counters")
  func counterLimit() async throws {
    let settings = try Fixtures.settings([Fixtures.first, Fixtures.second])
    let report = await Fixtures.report(settings) { request, number in
      .answer(request, .warm(Double(1 + number)))
    }
    let bytes = JSONReport(report).value.bytes()
    let fault = #expect(throws: SavedRun.Fault.self) { try SavedRun(bytes, mostCounters: 10_000) }
    #expect(fault?.description.hasPrefix("$.targets[1].") == true, "\(fault?.description ?? "")")
    #expect(fault?.description.contains(".hdr: the histograms up to here have more counters") == true)
    #expect(throws: Never.self) { try SavedRun(bytes, mostCounters: 200_000) }
  }

  @Test("a saved run in UTF-16 or UTF-32, or with a long run in a string, is refused")
  func slowRun() async throws {
    let settings = try Fixtures.settings([Fixtures.first])
    let report = await Fixtures.report(settings) { request, number in
      .answer(request, .warm(Double(1 + number)))
    }
    let json = JSONReport(report).value
    for bytes in WideJSON.encodings(of: json.bytes()) {
      let fault = #expect(throws: SavedRun.Fault.self) { try SavedRun(bytes) }
      #expect(fault?.description.contains("not UTF-8") == true)
    }
    // The name of the first member consists of 31 combining marks.
    let run = json.description.replacing(
      "{", with: "{\"\(String(repeating: "\u{301}", count: 31))\":1,", maxReplacements: 1)
    let fault = #expect(throws: SavedRun.Fault.self) { try SavedRun(Array(run.utf8)) }
    #expect(fault?.description.contains("combining marks") == true)
  }

  /// Compares pairs of runs with equal servers, whose times have serially correlated noise. With the
  /// dependence factor, less than 8 % of the comparisons are significant at the level of 5 %. Without it,
  /// more than 35 % are.
  @Test("the dependence factor keeps the rank-sum test near its level in correlated noise")
  func correlatedNoise() {
    /// The times of a run of 200 requests, and their dependence factor.
    func times(_ noise: inout Noise) -> (SavedRun.Times, Double) {
      let values = noise.series(200, correlation: 0.8).map { 100_000 * (1 + 0.05 * $0) }
      var histogram = HDRHistogram()
      for value in values { histogram.record(Int64(value)) }
      return (
        SavedRun.Times(histogram: histogram, timeouts: 0), SerialDependence(MidRanks(values).ranks).factor
      )
    }
    var noise = Noise(seed: 8)
    let runs = 400
    var (with, without) = (0, 0)
    for _ in 0..<runs {
      let (a, b) = (times(&noise), times(&noise))
      with += RankSum(a.0, b.0, factors: (a.1, b.1)).p < 0.05 ? 1 : 0
      without += RankSum(a.0, b.0, factors: (1, 1)).p < 0.05 ? 1 : 0
    }
    #expect(Double(with) / Double(runs) < 0.08, "\(with) of \(runs)")
    #expect(Double(without) / Double(runs) > 0.35, "\(without) of \(runs)")
  }

  /// The expected p values are from SciPy's `fisher_exact`. For large counts, `ProportionTest` uses the
  /// normal approximation instead of the exact test.
  @Test("the proportion test agrees with SciPy, and its two methods agree at the limit between them")
  func proportions() {
    #expect(abs(ProportionTest((0, 80), (6, 80)).p - 0.028358099) < 1e-8)
    #expect(abs(ProportionTest((1, 10), (11, 14)).p - 0.002759456) < 1e-8)
    #expect(abs(ProportionTest((3, 4), (1, 4)).p - 0.485714286) < 1e-8)
    #expect(abs(ProportionTest((2, 100), (0, 1000)).p - 0.008189263) < 1e-8)
    // Counts just below and just above the limit between the two methods.
    let exact = ProportionTest((4_900, 100_000), (5_090, 100_000))
    let large = ProportionTest((4_950, 101_020), (5_142, 101_020))
    #expect(exact.method == .exact && large.method == .normal)
    #expect(abs(exact.p - large.p) < 0.003, "\(exact.p) and \(large.p)")
    #expect(ProportionTest((0, 0), (1, 10)).p == 1 && ProportionTest((10, 10), (10, 10)).p == 1)
  }
}
