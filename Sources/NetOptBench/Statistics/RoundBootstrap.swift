import NetOptCore

/// The difference of a percentile between two targets, with an interval by drawing whole rounds again and again (Efron 1979;
/// rounds that depend on each other in runs of neighbours: Politis, Romano 1992). Both targets' values of a round stay together, so
/// that what both have in common, as the drift of the network, cancels out.
package struct RoundBootstrap: Hashable, Sendable {
  /// The difference of the percentiles, the first target's less the second's.
  package let difference: Double
  /// What it may be.
  package let interval: ClosedRange<Double>
  /// How likely a difference on the other side of 0 is, two-sided.
  package let p: Double

  /// The most draws.
  package static let draws = 2000
  /// The most values that are drawn in all: long runs have fewer draws.
  private static let budget = 40_000_000

  /// Draws.
  ///
  /// - Parameters:
  ///   - first: the values of one target by round.
  ///   - second: those of the other, of the same rounds.
  ///   - dependence: how rounds depend on those before.
  ///   - seed: what decides the draws.
  /// - Returns: `nil` without rounds.
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
    // Runs as long as the memory, and long enough for rounds that only look independent.
    let run =
      dependence.factor > 1
      ? min(count, max(2, Int(max(dependence.factor, cubeRoot(Double(count))).rounded(.up)))) : 1
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
          // Rounds lie in a circle, so that none is drawn less often than others.
          let index = start + step
          weights[index < count ? index : index - count] += 1
        }
        drawn += run
      }
      differences.append(a.value(rank, weights) - b.value(rank, weights))
    }
    differences.sort()
    let edge = Int((Double(draws) * (1 - confidence) / 2).rounded(.down))
    interval = differences[edge]...differences[draws - 1 - edge]
    let (below, above) = (differences.count { $0 <= 0 }, differences.count { $0 >= 0 })
    p = min(1, 2 * Double(min(below, above) + 1) / Double(draws + 1))
  }
}

/// The integer part of Swift's library has no cube root; this one is Newton's.
private func cubeRoot(_ value: Double) -> Double {
  var root = max(1, value / 3)
  for _ in 0..<60 { root = (2 * root + value / (root * root)) / 3 }
  return root
}

/// Values in ascending order whose ranks follow from how often each was drawn.
private struct WeightedRanks {
  private let order: [Int32]
  private let values: [Double]

  init(_ values: [Double]) {
    self.values = values
    order = values.indices.sorted { values[$0] < values[$1] }.map(Int32.init)
  }

  /// The value of a rank, found from above: the percentiles that are asked for are high ones.
  func value(_ rank: Int, _ weights: [Int32]) -> Double {
    var above = values.count - rank
    for index in order.reversed() {
      above -= Int(weights[Int(index)])
      if above < 0 { return values[Int(index)] }
    }
    return values[Int(order[0])]
  }
}
