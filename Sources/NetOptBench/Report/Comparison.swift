/// A comparison of two targets: the value of `a` minus the value of `b`.
package struct Comparison: Hashable, Sendable {
  /// The name of the target.
  package let a: String
  /// The name of the target that `a` is compared with.
  package let b: String
  /// The compared percentile.
  package let metric: Percentile
  /// The number of rounds with a value of both targets.
  package let rounds: Int
  /// The difference in microseconds.
  package let shift: Double
  /// The confidence interval of the difference, in microseconds.
  package let interval: ClosedRange<Double>
  /// The p value: the probability of a difference at least as large between equal targets.
  package let p: Double
  /// The p value, adjusted for the number of tests.
  package var adjusted: Double
  /// The method that computed p.
  package let method: String
  /// Whether `adjusted` is below α and the relative shift exceeds `BenchSettings.minimumEffect`.
  package var isSignificant = false
  /// The median of `b`, in microseconds.
  let base: Int64

  /// The difference as a share of the median of `b`.
  package var relative: Double { base > 0 ? shift / Double(base) : 0 }

  mutating func judge(_ settings: BenchSettings) {
    isSignificant = adjusted < settings.alpha && abs(relative) > settings.minimumEffect
  }
}

/// The comparisons of a run. Each target is compared with the reference. Each target is also compared with
/// the fastest target of the rank before it, which determines whether the target shares that rank.
struct Comparisons {
  private let settings: BenchSettings
  private let block: Block
  private let ranking: [BenchReport.TargetResult]
  private let reference: BenchReport.TargetResult?

  init(_ report: BenchReport) {
    settings = report.settings
    block = report.rankingBlock
    ranking = report.ranking.filter { $0.median(report.rankingBlock) != nil }
    reference = report.reference.flatMap { $0.median(report.rankingBlock) == nil ? nil : $0 }
  }

  /// All comparisons; the comparisons with the reference come first.
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

  /// Adjusts a p value for the number of all pairs of `count` targets. The ranking determines which targets
  /// are compared, and the first target of a rank is the smallest of a group without significant differences.
  /// A test of a pair chosen in this way counts as a test of all pairs.
  static func adjusted(_ p: Double, amongTargets count: Int) -> Double {
    min(1, p * Double(count * (count - 1) / 2))
  }

  /// Walks down the ranking. A target that differs significantly from the first target of the current rank
  /// begins the next rank.
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

  /// Whether the comparison begins a new rank. An earlier comparison of the same pair takes precedence.
  private func starts(_ comparison: Comparison, _ known: [Comparison]) -> Bool {
    let before = known.first { other in
      other.metric == .p50 && Set([other.a, other.b]) == Set([comparison.a, comparison.b])
    }
    return (before ?? comparison).isSignificant
  }

  private func adjusted(_ comparisons: [Comparison]) -> [Comparison] {
    zip(comparisons, Holm.adjusted(comparisons.map(\.p))).map { comparison, adjusted in
      var comparison = comparison
      comparison.adjusted = adjusted
      comparison.judge(settings)
      return comparison
    }
  }

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

/// The response times of two targets in the same rounds. The pairs leave out rounds in which a target failed
/// in another way than by a timeout. A timeout counts as the longest response time of both targets.
struct Pairs {
  /// The response times of the first target, in microseconds.
  let first: [Double]
  /// The response times of the second target, in microseconds.
  let second: [Double]

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

  /// The differences, first target minus second target.
  var differences: [Double] { zip(first, second).map { $0 - $1 } }
}
