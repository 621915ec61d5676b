import NetOptCore

/// The difference between two targets at a percentile, with a bootstrap interval. The bootstrap draws whole
/// rounds at random, with repetition (Efron 1979). When rounds depend on each other, it draws runs of
/// neighbouring rounds (Politis, Romano 1992). The two values of a round stay together, so that effects on
/// both targets, such as the drift of the network, cancel out.
package struct RoundBootstrap: Hashable, Sendable {
  /// The percentile of the first target minus the percentile of the second target, in the unit of the values.
  package let difference: Double
  /// The confidence interval of the difference.
  package let interval: ClosedRange<Double>
  /// The two-sided p value: twice the smaller of the share of resamples with a difference ≤ 0 and the share
  /// of resamples with a difference ≥ 0; at most 1. Both shares count one additional resample, so that p is
  /// never 0.
  package let p: Double

  /// The maximum number of resamples. A resample has as many rounds as were measured. They are drawn at
  /// random, so a round can be in a resample several times or not at all.
  package static let draws = 2000
  /// The maximum number of rounds that all resamples contain together. A run with many rounds gets fewer
  /// resamples, so that it stays within this maximum, but at least 200.
  private static let budget = 40_000_000

  /// Draws the resamples.
  ///
  /// - Parameters:
  ///   - first: the value of the first target in each round.
  ///   - second: the value of the second target in the same rounds.
  ///   - dependence: the serial dependence of the differences between the two targets, round by round.
  ///   - confidence: the confidence of the interval, between 0 and 1.
  ///   - seed: the seed of the random numbers.
  /// - Returns: `nil` when there are no rounds.
  package init?(
    _ percentile: Percentile, _ first: [Double], _ second: [Double], dependence: SerialDependence,
    confidence: Double, seed: UInt64
  ) {
    let count = first.count
    guard count > 0, second.count == count else { return nil }
    let rank = percentile.nearestRank(of: count)
    let (a, b) = (WeightedRanks(first), WeightedRanks(second))
    let ones = [Int32](repeating: 1, count: count)
    difference = a.value(rank, ones) - b.value(rank, ones)
    // A run of neighbouring rounds is as long as `dependence.factor`, but at least the cube root of the
    // number of rounds: a weak dependence may reach further than the factor shows. Without dependence a run
    // is one round.
    let run =
      dependence.factor > 1
      ? min(count, max(2, Int(clamped: max(dependence.factor, cubeRoot(Double(count))).rounded(.up)))) : 1
    let draws = max(200, min(Self.draws, Self.budget / count))
    var generator = SplitMix64(seed: seed)
    var differences: [Double] = []
    differences.reserveCapacity(draws)
    var weights = ones
    for _ in 0..<draws {
      for index in weights.indices { weights[index] = 0 }
      var drawn = 0
      while drawn < count {
        let start = Int(generator.below(UInt64(count)))
        for step in 0..<min(run, count - drawn) {
          // The first round follows the last one, so that each round is drawn equally often on average.
          let index = start + step
          weights[index < count ? index : index - count] += 1
        }
        drawn += run
      }
      differences.append(a.value(rank, weights) - b.value(rank, weights))
    }
    differences.sort()
    let edge = Int(clamped: (Double(draws) * (1 - confidence) / 2).rounded(.down))
    interval = differences[edge]...differences[draws - 1 - edge]
    let (below, above) = (differences.count { $0 <= 0 }, differences.count { $0 >= 0 })
    p = min(1, 2 * Double(min(below, above) + 1) / Double(draws + 1))
  }
}

/// The cube root by Newton's method. The Swift standard library has no cube root.
private func cubeRoot(_ value: Double) -> Double {
  var root = max(1, value / 3)
  for _ in 0..<60 { root = (2 * root + value / (root * root)) / 3 }
  return root
}

/// Finds the value at a rank in a resample, where each value occurs as often as its round was drawn.
private struct WeightedRanks {
  /// The indices of the values, in ascending order of the values.
  private let order: [Int32]
  private let values: [Double]

  init(_ values: [Double]) {
    self.values = values
    order = values.indices.sorted { values[$0] < values[$1] }.map(Int32.init)
  }

  /// The value at a rank, from 1. The search starts at the largest value, because the percentiles in use are
  /// high.
  ///
  /// - Parameter weights: how often each value occurs; as many in total as there are values.
  func value(_ rank: Int, _ weights: [Int32]) -> Double {
    var above = values.count - rank
    for index in order.reversed() {
      above -= Int(weights[Int(index)])
      if above < 0 { return values[Int(index)] }
    }
    return values[Int(order[0])]
  }
}
