import NetOptCore
import Testing

@testable import NetOptBench

/// Comparisons of synthetic runs whose true difference is known.
@Suite struct SyntheticRunTests {
  /// The significance level of the tests.
  private static let alpha = 0.05

  /// The response times of two targets in microseconds, on a network that becomes 10 % slower during the run.
  /// The second target takes 100 ms at the start, the first target `factor` times as long.
  ///
  /// - Parameters:
  ///   - correlation: the correlation of the noise in neighbouring rounds, from 0 to 1.
  ///   - spread: the standard deviation of the noise, as a share of the response time.
  private static func run(
    _ rounds: Int, correlation: Double, factor: Double = 1, spread: Double = 0.05, _ noise: inout Noise
  ) -> (first: [Double], second: [Double]) {
    func target(_ noise: inout Noise, _ factor: Double) -> [Double] {
      noise.series(rounds, correlation: correlation).enumerated().map { round, value in
        100_000 * factor * (1 + 0.1 * Double(round) / Double(rounds - 1)) * (1 + spread * value)
      }
    }
    return (target(&noise, factor), target(&noise, 1))
  }

  /// Makes 10,000 runs of equal targets. The share of significant differences is about α, whatever the serial
  /// correlation of the noise.
  @Test(
    "equal targets differ significantly in 3 to 7 % of runs at alpha 5 %",
    arguments: [
      (0.0, 80, 2500), (0.3, 80, 2500), (0.6, 80, 2500), (0.9, 80, 1500), (0.5, 400, 500), (0.5, 36, 500),
    ])
  func equalTargets(correlation: Double, rounds: Int, runs: Int) {
    var noise = Noise(seed: UInt64(rounds * 100) + UInt64(correlation * 10))
    let significant = (0..<runs).count { _ in
      let (first, second) = Self.run(rounds, correlation: correlation, &noise)
      return SignedRank(zip(first, second).map { $0 - $1 }).p < Self.alpha
    }
    let share = Double(significant) / Double(runs)
    #expect((0.03...0.07).contains(share), "\(share)")
  }

  /// Takes the two halves of a series for two equal targets that are measured one after the other. Because
  /// the network becomes slower, most comparisons of the halves find a difference. Rounds avoid this: in a
  /// round, all targets are measured at about the same time.
  @Test("without rounds, the drift of the network looks like a difference in most runs")
  func drift() {
    var noise = Noise(seed: 1)
    let runs = 300
    let significant = (0..<runs).count { _ in
      let (series, _) = Self.run(160, correlation: 0.3, &noise)
      return Self.rankSum(Array(series[..<80]), Array(series[80...])) < Self.alpha
    }
    #expect(Double(significant) / Double(runs) > 0.5, "\(significant) of \(runs)")
  }

  @Test("the number of rounds that a run needs is clamped when no integer can hold it")
  func hugeNumberOfRounds() {
    for (shift, halfWidth) in [(1e-9, 1e12), (.leastNonzeroMagnitude, 1), (0, 1), (1, .infinity)] {
      let rounds = SignedRankPower.rounds(for: shift, halfWidth: halfWidth, count: 850, confidence: 0.95)
      #expect(rounds > Int.max / 2)
    }
    #expect(SignedRankPower.rounds(for: 0, halfWidth: 0, count: 850, confidence: 0.95) == 850)
  }

  /// The test finds a shift of 2 % about as often as `SignedRankPower` predicts.
  @Test(
    "the test finds a shift of 2 % with the predicted power",
    arguments: [(80, 0.05), (80, 0.03), (200, 0.06)])
  func detectedShift(rounds: Int, spread: Double) {
    var noise = Noise(seed: UInt64(rounds) + UInt64(spread * 1000))
    let runs = 1500
    let found = (0..<runs).count { _ in
      let (first, second) = Self.run(rounds, correlation: 0, factor: 1.02, spread: spread, &noise)
      return SignedRank(zip(first, second).map { $0 - $1 }).p < Self.alpha
    }
    // In the middle of the run both targets take about 105 ms.
    let promised = SignedRankPower.power(
      shift: 2_100, deviation: 105_000 * spread * 2.0.squareRoot(), count: rounds)
    let share = Double(found) / Double(runs)
    // The test also estimates serial dependence. This costs some power when there is no dependence.
    #expect(abs(share - promised) < 0.06, "found \(share), promised \(promised)")
  }

  /// The test finds a large shift in few rounds, even if these rounds happen to look dependent. A test by
  /// ranks alone would find 93 % of these shifts.
  @Test("the test finds a shift of 100 % in 10 to 16 rounds", arguments: [10, 12, 16])
  func largeShift(rounds: Int) {
    var noise = Noise(seed: UInt64(rounds))
    let runs = 1000
    let found = (0..<runs).count { _ in
      let (first, second) = Self.run(rounds, correlation: 0, factor: 2, &noise)
      return SignedRank(zip(first, second).map { $0 - $1 }).p < Self.alpha
    }
    #expect(Double(found) / Double(runs) > 0.99, "\(found) of \(runs)")
  }

  @Test("the number of rounds that a short run predicts gives a power near 80 %")
  func predictedRounds() throws {
    var noise = Noise(seed: 3)
    let (first, second) = Self.run(80, correlation: 0, factor: 1.01, &noise)
    let interval = try #require(
      SignedRank(zip(first, second).map { $0 - $1 }).interval(confidence: 0.95))
    let rounds = SignedRankPower.rounds(
      for: 1_050, halfWidth: (interval.upperBound - interval.lowerBound) / 2, count: 80, confidence: 0.95)
    let power = SignedRankPower.power(
      shift: 1_050, deviation: 105_000 * 0.05 * 2.0.squareRoot(), count: rounds)
    #expect(rounds > 200 && abs(power - 0.8) < 0.15, "\(rounds) rounds, \(power)")
  }

  /// The interval contains the true shift in about as many runs as its confidence says, with and without
  /// serial dependence.
  @Test("the shift's interval contains the truth in 92 to 98.5 % of runs", arguments: [0.0, 0.6])
  func shiftInterval(correlation: Double) {
    var noise = Noise(seed: 5)
    let runs = 600
    let held = (0..<runs).count { _ in
      let (first, second) = Self.run(80, correlation: correlation, &noise)
      let test = SignedRank(zip(first, second).map { $0 - $1 })
      return test.interval(confidence: 0.95)?.contains(0) ?? false
    }
    #expect((0.92...0.985).contains(Double(held) / Double(runs)), "\(held)")
  }

  /// The share of runs in which five equal targets get different ranks is about α, although the fastest
  /// target is the fastest only by chance.
  @Test("five equal targets get different ranks in less than 6 % of runs")
  func equalRanks() throws {
    var noise = Noise(seed: 21)
    var settings = try Fixtures.settings((1...5).map { IPAddress(v4: 0x0a00_0000 + $0) }, dns: false)
    settings.blocks = [.warm]
    settings.minimumEffect = 0
    let runs = 400
    var byNeighbours = 0
    let apart = (0..<runs).count { _ in
      var report = BenchReport(settings, Fixtures.context)
      for index in report.targets.indices {
        var series = SampleSeries()
        for value in noise.series(24, correlation: 0) {
          series.append(
            Sample(.answered(status: 200), timings: .warm(100 + 5 * value, transfer: 0), reused: true))
        }
        report.targets[index].add(series, of: .warm, order: settings.order)
      }
      report.comparisons = Comparisons(report).all
      // Counts the runs in which an adjustment for only the 4 comparisons would find a difference. This
      // adjustment ignores that the targets are compared with the fastest one, which is chosen by its times.
      if report.comparisons.contains(where: { $0.p * 4 < Self.alpha }) { byNeighbours += 1 }
      return report.ranks.contains { $0.rank > 1 }
    }
    #expect(Double(apart) / Double(runs) < 0.06, "\(apart) of \(runs)")
    #expect(byNeighbours > apart, "\(byNeighbours) and \(apart) of \(runs)")
  }

  /// The noise is serially correlated. A bootstrap that draws sequences of neighbouring rounds keeps this
  /// correlation, and a bootstrap that draws single rounds loses it. So the interval of the former contains
  /// the true difference more often.
  @Test("the interval of neighbouring rounds contains the truth more often than one of single rounds")
  func bootstrapOfNeighbours() throws {
    var noise = Noise(seed: 22)
    let runs = 120
    var (neighbours, single) = (0, 0)
    for run in 0..<runs {
      let (first, second) = Self.run(400, correlation: 0.6, &noise)
      for (dependence, isBlocked) in [
        (SerialDependence(zip(first, second).map { $0 - $1 }), true), (SerialDependence([]), false),
      ] {
        let found = try #require(
          RoundBootstrap(
            .p95, first, second, dependence: dependence, confidence: 0.95, seed: UInt64(run)))
        if found.interval.contains(0) { if isBlocked { neighbours += 1 } else { single += 1 } }
      }
    }
    #expect(Double(neighbours) / Double(runs) > 0.9, "\(neighbours) of \(runs)")
    #expect(neighbours > single, "\(neighbours) by runs of neighbours, \(single) by single rounds")
  }

  /// The two-sided p value of the rank-sum test of Mann and Whitney, by the normal approximation.
  private static func rankSum(_ first: [Double], _ second: [Double]) -> Double {
    let ranks = MidRanks(first + second).ranks
    let (m, n) = (Double(first.count), Double(second.count))
    let sum = ranks.prefix(first.count).reduce(0, +)
    let z = (sum - m * (m + n + 1) / 2) / (m * n * (m + n + 1) / 12).squareRoot()
    return 2 * NormalDistribution.upperTail(abs(z))
  }
}
