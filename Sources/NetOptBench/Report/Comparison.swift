/// How two targets compare: the first one's value less the second's.
package struct Comparison: Hashable, Sendable {
  /// The target.
  package let a: String
  /// What it is compared with.
  package let b: String
  /// What is compared.
  package let metric: Percentile
  /// How many rounds have a value of both.
  package let rounds: Int
  /// The difference in microseconds.
  package let shift: Double
  /// What it may be.
  package let interval: ClosedRange<Double>
  /// How likely a difference as large is between equal targets.
  package let p: Double
  /// The same, after as many questions as were asked.
  package var adjusted: Double
  /// How p came about.
  package let method: String
  /// Whether `adjusted` is below α and the shift above the smallest that matters.
  package var isSignificant = false
  /// The median of `b`, in microseconds.
  let base: Int64

  /// The difference as a share of the other's median.
  package var relative: Double { base > 0 ? shift / Double(base) : 0 }

  mutating func judge(_ settings: BenchSettings) {
    isSignificant = adjusted < settings.alpha && abs(relative) > settings.minimumEffect
  }
}

/// The comparisons of a run: of each target with the reference, and of each with the fastest of those before it in the ranking,
/// which decides whether it shares their rank.
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

  /// All of them; those with the reference first.
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

  /// A p value when any two of so many targets may be asked about. Who is compared with whom follows from the ranking, and the first
  /// of a rank is the smallest of those that cannot be told apart: a test of a chosen pair is one of all pairs.
  static func adjusted(_ p: Double, amongTargets count: Int) -> Double {
    min(1, p * Double(count * (count - 1) / 2))
  }

  /// Walks down the ranking: a target that differs from the first of its rank begins the next one.
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

  /// Whether the answer begins a new rank: what was asked about the same pair before decides.
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

/// What two targets took in the same rounds. A round in which one of them failed, other than by a timeout, is left out; a
/// timeout takes as long as the longest request of both.
struct Pairs {
  /// The first target's.
  let first: [Double]
  /// The second target's.
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

  /// By how much the first target took longer.
  var differences: [Double] { zip(first, second).map { $0 - $1 } }
}
