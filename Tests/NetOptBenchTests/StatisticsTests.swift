import Testing

@testable import NetOptBench

@Suite struct StatisticsTests {
  @Test(
    "a percentile has ranks only with the needed number of values",
    arguments: [(Percentile.p50, 6), (.p90, 36), (.p95, 72), (.p99, 368), (.p999, 3688)])
  func neededValues(percentile: Percentile, needed: Int) {
    let order = OrderStatistics()
    #expect(order.needed(for: percentile) == needed)
    #expect(order.ranks(of: percentile, count: needed - 1) == nil)
    #expect(order.ranks(of: percentile, count: needed) != nil)
  }

  @Test("the ranks of p99.9 among 1,000,000 values match the normal approximation")
  func manyValues() throws {
    let ranks = try #require(OrderStatistics().ranks(of: .p999, count: 1_000_000))
    // 1000 values lie above p99.9. Each end of the interval is 1.96 standard deviations of 31.6 away.
    #expect(abs(ranks.lowerBound - 998_938) <= 2 && abs(ranks.upperBound - 999_063) <= 2, "\(ranks)")
  }

  /// Where the variance is large, the ranks come from the normal distribution. The test compares both sides of
  /// that limit with exact probabilities.
  @Test("the interval of a percentile misses it on each side with at most 2.5 %, and is as short as possible")
  func shortestRanks() throws {
    var noise = Noise(seed: 17)
    for percentile in Percentile.reported {
      let limit = 1e6 / (percentile.share * (1 - percentile.share))
      for scale in [0.00001, 0.001, 0.1, 0.999, 1.001, 3] {
        let count = Int(limit * scale * (1 + 0.0001 * noise.uniform()))
        guard let ranks = OrderStatistics().ranks(of: percentile, count: count) else { continue }
        func below(_ rank: Int) -> Double {
          BinomialDistribution.lowerTail(rank - 1, of: count, probability: percentile.share)
        }
        // Near the limit an end may be two ranks further out than necessary.
        let slack = scale > 1 ? 3 : 1
        #expect(below(ranks.lowerBound) <= 0.025 && below(ranks.lowerBound + slack) > 0.025)
        #expect(1 - below(ranks.upperBound) <= 0.025 && 1 - below(ranks.upperBound - slack) > 0.025)
      }
    }
  }

  @Test("the ranks of 2^40 values are as far apart as the normal distribution says")
  func mostValues() throws {
    let ranks = try #require(OrderStatistics().ranks(of: .p50, count: 1 << 40))
    let width = Double(ranks.upperBound - ranks.lowerBound)
    #expect(abs(width / 1.959964 / Double(1 << 20) - 1) < 1e-5, "\(ranks)")
  }

  @Test("six differences of one sign are the fewest that are significant")
  func fewestDifferences() {
    #expect(SignedRank([1, 2, 3, 4, 5, 6]).p == 2.0 / 64)
    #expect(SignedRank([1, 2, 3, 4, 5]).p == 2.0 / 32)
    #expect(SignedRank([1, 2, 3, 4, 5]).interval(confidence: 0.95) == nil)
    #expect(SignedRank([1, 2, 3, 4, 5, 6]).interval(confidence: 0.95) == 1...6)
  }

  @Test("no differences and zero differences are not significant")
  func noDifference() {
    #expect(SignedRank([]).p == 1 && SignedRank([]).shift == nil)
    #expect(SignedRank([]).interval(confidence: 0.95) == nil)
    let same = SignedRank([Double](repeating: 0, count: 20))
    #expect(same.p == 1 && same.shift == 0)
    #expect(same.interval(confidence: 0.95).map { $0.contains(0) } ?? true)
  }

  @Test("the walsh averages equal the enumerated averages")
  func enumeratedAverages() {
    var noise = Noise(seed: 11)
    for count in [1, 2, 3, 10, 41] {
      let sorted = (0..<count).map { _ in (noise.normal() * 5).rounded() / 2 }.sorted()
      let all = sorted.indices.flatMap { i in sorted.indices[i...].map { (sorted[i] + sorted[$0]) / 2 } }
        .sorted()
      let averages = WalshAverages(sorted)
      #expect(averages.count == all.count)
      #expect((1...all.count).map(averages.smallest) == all)
    }
  }

  @Test("the test computes the shift of 100,000 differences without enumerating all averages")
  func largeShift() throws {
    var noise = Noise(seed: 12)
    let differences = (0..<100_000).map { _ in noise.normal() + 0.5 }
    // There are 5 billion averages of two differences.
    let shift = try #require(SignedRank(differences, isSerial: false).shift)
    #expect(abs(shift - 0.5) < 0.02)
  }

  @Test("the estimate finds serial dependence in a correlated series and not in an independent one")
  func seriesDependence() {
    var noise = Noise(seed: 13)
    let independent = SerialDependence(noise.series(400, correlation: 0))
    #expect(independent.factor < 1.4)
    let dependent = SerialDependence(noise.series(400, correlation: 0.8))
    #expect((4.0...20).contains(dependent.factor), "\(dependent.factor)")
    #expect(dependent.effectiveCount < 100)
  }

  @Test("tau is 1 for equal rankings, -1 for reversed rankings and nil for rankings with ties only")
  func rankings() {
    #expect(KendallTau.b([1, 2, 3], [10, 20, 30]) == 1)
    #expect(KendallTau.b([1, 2, 3], [30, 20, 10]) == -1)
    #expect(KendallTau.b([1, 1, 1], [1, 2, 3]) == nil)
    #expect(KendallTau.b([], []) == nil)
  }

  @Test("the bootstrap finds the difference of a percentile under noise that both targets share")
  func tailDifference() throws {
    var noise = Noise(seed: 14)
    let common = (0..<400).map { _ in 100 * abs(noise.normal()) }
    let first = common.map { $0 + 1000 + noise.normal() }
    let slower = common.map { $0 + 1050 + noise.normal() }
    let found = try #require(
      RoundBootstrap(
        .p95, slower, first, dependence: SerialDependence([]), confidence: 0.95, seed: 1))
    #expect(found.interval.contains(50) && found.p < 0.01, "\(found)")
    #expect(found.interval.upperBound - found.interval.lowerBound < 10, "what is common cancels out")
    let same = try #require(
      RoundBootstrap(.p99, first, first, dependence: SerialDependence([]), confidence: 0.95, seed: 1))
    #expect(same.p == 1 && same.difference == 0)
    #expect(
      RoundBootstrap(.p95, [], [], dependence: SerialDependence([]), confidence: 0.95, seed: 1) == nil)
  }

  @Test("the bootstrap's interval contains the truth in at least 88 of 100 runs")
  func bootstrapInterval() throws {
    var noise = Noise(seed: 15)
    let held = try (0..<100).count { seed in
      let first = (0..<150).map { _ in abs(noise.normal()) }
      let second = (0..<150).map { _ in abs(noise.normal()) }
      return try #require(
        RoundBootstrap(
          .p95, first, second, dependence: SerialDependence([]), confidence: 0.95, seed: UInt64(seed))
      ).interval.contains(0)
    }
    #expect(held >= 88, "\(held)")
  }
}
