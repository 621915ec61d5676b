/// A comparison of the response times of two targets, `a` and `b`. A difference is the time of `a` minus the
/// time of `b`, so a positive difference means that `a` is slower.
package struct Comparison: Hashable, Sendable {
  /// The name of the first target (`BenchTarget.id`).
  package let a: String
  /// The name of the second target. It is the reference, or the first target of a rank.
  package let b: String
  /// The compared percentile.
  package let metric: Percentile
  /// The number of rounds that the comparison uses: those in which each of the two targets succeeded or timed
  /// out.
  package let rounds: Int
  /// The difference in microseconds. At p50, it is the shift of Hodges and Lehmann over the rounds; at other
  /// percentiles, the difference of the two percentiles.
  package let shift: Double
  /// The confidence interval of the difference, in microseconds.
  package let interval: ClosedRange<Double>
  /// The p value of this comparison alone: the probability of a difference at least as large between targets
  /// that are in fact equal.
  package let p: Double
  /// The p value, adjusted because the run makes several comparisons: for the number of comparisons with the
  /// reference, or for the number of all pairs of targets. Initially equal to `p`.
  package var adjusted: Double
  /// The name of the method that computed `p`, for reports.
  package let method: String
  /// Whether `adjusted` is below `BenchSettings.alpha` and the difference exceeds
  /// `BenchSettings.minimumEffect`.
  package var isSignificant = false
  /// The p50 of `b`, in microseconds. It is the p50 even when `metric` is another percentile.
  let base: Int64

  /// The difference as a share of the p50 of `b`, with its sign.
  package var relative: Double { base > 0 ? shift / Double(base) : 0 }

  /// Sets `isSignificant` from `adjusted` and `relative`.
  mutating func judge(_ settings: BenchSettings) {
    isSignificant = adjusted < settings.alpha && abs(relative) > settings.minimumEffect
  }
}

/// Makes the comparisons of a run. Each target is compared with the reference. To find the ranks, each target
/// is also compared with the first target of the rank before it.
struct Comparisons {
  private let settings: BenchSettings
  /// The block whose samples are compared: the ranking block.
  private let block: Block
  /// The measured targets with a p50, the lowest first.
  private let ranking: [BenchReport.TargetResult]
  /// The reference; `nil` when it has no p50.
  private let reference: BenchReport.TargetResult?

  init(_ report: BenchReport) {
    settings = report.settings
    block = report.rankingBlock
    ranking = report.ranking.filter { $0.median(report.rankingBlock) != nil }
    reference = report.reference.flatMap { $0.median(report.rankingBlock) == nil ? nil : $0 }
  }

  /// All comparisons of the run. The comparisons with the reference come first.
  var all: [Comparison] {
    var found: [Comparison] = []
    if let reference {
      let others = ranking.filter { $0.target != reference.target }
      let pairs = others.map { Pairs($0, reference, block) }
      let shifts = adjusted(zip(others, pairs).compactMap { shift($0, reference, $1) })
      found += shifts
      for percentile in [Percentile.p95, .p99] {
        found += adjusted(zip(others, pairs).compactMap { tail(percentile, $0, reference, $1) })
      }
    }
    return found + neighbours(besides: found)
  }

  /// Multiplies a p value by the number of all pairs of `count` targets, with 1 as the maximum (Bonferroni).
  /// The measured ranking decides which pairs are compared, and the fastest of several equal targets may be
  /// the fastest by chance. So a test of one pair must count as a test of all pairs.
  static func adjusted(_ p: Double, amongTargets count: Int) -> Double {
    min(1, p * Double(count * (count - 1) / 2))
  }

  /// Walks down the ranking, and compares each target at p50 with the first target of the current rank. A
  /// target that differs significantly begins the next rank, and is the first target of that rank.
  ///
  /// - Parameter known: the comparisons with the reference.
  /// - Returns: the comparisons that are not in `known`.
  private func neighbours(besides known: [Comparison]) -> [Comparison] {
    guard var leader = ranking.first else { return [] }
    var found: [Comparison] = []
    for target in ranking.dropFirst() {
      guard var comparison = shift(target, leader, Pairs(target, leader, block)) else { continue }
      comparison.adjusted = Self.adjusted(comparison.p, amongTargets: ranking.count)
      comparison.judge(settings)
      if !known.contains(where: { $0.a == comparison.a && $0.b == comparison.b }) { found.append(comparison) }
      if starts(comparison, known) { leader = target }
    }
    return found
  }

  /// Whether the target `a` of a comparison begins a new rank. If `known` contains a comparison of the same
  /// two targets at p50, that comparison decides, so that the ranks agree with the table.
  private func starts(_ comparison: Comparison, _ known: [Comparison]) -> Bool {
    let before = known.first { other in
      other.metric == .p50 && Set([other.a, other.b]) == Set([comparison.a, comparison.b])
    }
    return (before ?? comparison).isSignificant
  }

  /// Adjusts the p values of some comparisons for the number of these comparisons (Holm), and sets their
  /// `isSignificant`.
  private func adjusted(_ comparisons: [Comparison]) -> [Comparison] {
    zip(comparisons, Holm.adjusted(comparisons.map(\.p))).map { comparison, adjusted in
      var comparison = comparison
      comparison.adjusted = adjusted
      comparison.judge(settings)
      return comparison
    }
  }

  /// Compares two targets at p50 with the signed-rank test; `nil` when there are too few rounds.
  private func shift(
    _ a: BenchReport.TargetResult, _ b: BenchReport.TargetResult, _ pairs: Pairs
  ) -> Comparison? {
    let test = SignedRank(pairs.differences)
    guard let shift = test.shift, let interval = test.interval(confidence: 1 - settings.alpha),
      let base = b.median(block)
    else { return nil }
    return Comparison(
      a: a.target.id, b: b.target.id, metric: .p50, rounds: test.count, shift: shift, interval: interval,
      p: test.p,
      adjusted: test.p, method: test.method.rawValue, base: base)
  }

  /// Compares two targets at a high percentile with the bootstrap of rounds; `nil` when there are too few
  /// rounds.
  private func tail(
    _ percentile: Percentile, _ a: BenchReport.TargetResult, _ b: BenchReport.TargetResult, _ pairs: Pairs
  ) -> Comparison? {
    let needed = settings.order.needed(for: percentile)
    guard pairs.first.count >= needed, let base = b.median(block),
      let found = RoundBootstrap(
        percentile, pairs.first, pairs.second, dependence: SerialDependence(pairs.differences),
        confidence: 1 - settings.alpha, seed: settings.seed)
    else { return nil }
    return Comparison(
      a: a.target.id, b: b.target.id, metric: percentile, rounds: pairs.first.count, shift: found.difference,
      interval: found.interval, p: found.p, adjusted: found.p, method: "bootstrap of rounds", base: base)
  }
}

/// The response times of two targets in a block, paired by round. A round in which a target failed is left
/// out, unless the failure was a timeout. A timeout counts as the longest time that any request of the two
/// targets took in the block, failed requests included.
struct Pairs {
  /// The response time of the first target in each round, in microseconds.
  let first: [Double]
  /// The response time of the second target in the same rounds, in microseconds.
  let second: [Double]

  /// Pairs the samples of two targets in a block. There are no pairs when a target has no samples in the
  /// block.
  init(_ a: BenchReport.TargetResult, _ b: BenchReport.TargetResult, _ block: Block) {
    guard let a = a.blocks[block]?.series, let b = b.blocks[block]?.series else {
      (first, second) = ([], [])
      return
    }
    let censored = Double(max(a.largest, b.largest))
    func value(_ series: SampleSeries, _ index: Int) -> Double? {
      switch series.kinds[index] {
      case .ok: Double(series.response(index))
      case .timeout: censored
      default: nil
      }
    }
    var (first, second): ([Double], [Double]) = ([], [])
    for index in 0..<min(a.count, b.count) {
      guard let x = value(a, index), let y = value(b, index) else { continue }
      first.append(x)
      second.append(y)
    }
    (self.first, self.second) = (first, second)
  }

  /// The difference in each round: the time of the first target minus the time of the second target, in
  /// microseconds.
  var differences: [Double] { zip(first, second).map { $0 - $1 } }
}
