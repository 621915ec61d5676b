/// Percentiles as order statistics: a value that was measured, found by its nearest rank, never one in between.
package enum Percentiles {
  /// The percentiles that are reported.
  package static let reported = [50, 90, 95, 99]

  /// How many samples a percentile needs: so many that the largest of them lies above it with a probability of 97.5 %,
  /// which is the smallest n with pⁿ ≤ 0.025. With fewer, no upper limit could be given for it.
  package static func needed(for percentile: Int) -> Int {
    switch percentile {
    case ...50: 6
    case ...90: 36
    case ...95: 72
    default: 368
    }
  }

  /// The value at a percentile's nearest rank: the smallest one that at least that share of all lies at or below.
  ///
  /// - Parameters:
  ///   - percentile: 1 to 100.
  ///   - sorted: the values in ascending order.
  ///   - total: how many there are with those that are only known to be larger than every other.
  /// - Returns: `nil` when the rank falls on one of those.
  package static func nearestRank(_ percentile: Int, of sorted: [Int64], total: Int) -> Int64? {
    let rank = max(1, (percentile * total + 99) / 100)
    return rank <= sorted.count ? sorted[rank - 1] : nil
  }
}
