import Glibc
import NetOptCore

/// Computes the confidence intervals of percentiles, as ranks among the values in ascending order. The number
/// of values below a percentile is binomially distributed, so the intervals assume nothing about the
/// distribution of the values.
package struct OrderStatistics: Hashable, Sendable {
  /// The probability that an interval contains the true percentile. 0.95 by default.
  package let confidence: Double

  /// Makes the statistics for a confidence between 0 and 1.
  package init(confidence: Double = 0.95) { self.confidence = confidence }

  /// The maximum probability that an interval lies above the true percentile. It is also the maximum
  /// probability that an interval lies below the true percentile.
  private var tail: Double { (1 - confidence) / 2 }

  /// The number of values that a percentile needs so that both ends of its interval are among the values.
  package func needed(for percentile: Percentile) -> Int {
    // The side of the percentile with fewer values decides: shareⁿ ≤ tail.
    let share = max(percentile.share, 1 - percentile.share)
    return Int(clamped: (log(tail) / log(share)).rounded(.up))
  }

  /// The ranks, from 1, of the two values that are the ends of a percentile's interval. The interval contains
  /// the percentile at least with the probability `confidence`. It misses the percentile on each side with at
  /// most half of the remaining probability (Hahn, Meeker 1991, section 5.2).
  ///
  /// - Parameter count: the number of values.
  /// - Returns: `nil` when there are too few values.
  package func ranks(of percentile: Percentile, count: Int) -> ClosedRange<Int>? {
    guard count >= needed(for: percentile) else { return nil }
    let (low, high) = Self.ends(of: percentile.share, count, tail)
    guard low >= 1, high <= count else { return nil }
    return low...max(low, high)
  }

  /// The variance from which the ends are taken from the normal distribution. Its error is then below one
  /// rank. The time for an exact probability grows with the standard deviation.
  private static let largeVariance = 1e6

  /// The ends of an interval. X is the number of values below the percentile. The lower end is the largest
  /// rank with P(X < rank) ≤ tail. The upper end is the smallest rank with P(X ≥ rank) ≤ tail. When the
  /// variance of X is large, each end may be two ranks further out.
  private static func ends(of share: Double, _ count: Int, _ tail: Double) -> (low: Int, high: Int) {
    let variance = Double(count) * share * (1 - share)
    // The expansion of Cornish and Fisher for the quantiles of the binomial distribution.
    let z = -NormalDistribution.quantile(tail)
    let middle = Double(count) * share + (1 - 2 * share) * (z * z - 1) / 6
    let low = Int(clamped: (middle - z * variance.squareRoot()).rounded(.down))
    let high = Int(clamped: (middle + z * variance.squareRoot()).rounded(.up))
    guard variance < largeVariance else { return (low - 1, high + 1) }
    func below(_ rank: Int) -> Double {
      BinomialDistribution.lowerTail(rank - 1, of: count, probability: share)
    }
    return (
      first(in: 1...count + 1, near: low) { below($0) > tail } - 1,
      first(in: 1...count + 1, near: high) { 1 - below($0) <= tail }
    )
  }

  /// The first number in a range for which `holds` is true, or the last number when it is never true. When
  /// `holds` is true for a number, it must be true for all later numbers. The function asks for a few numbers
  /// only when `guess` is near the result.
  private static func first(in range: ClosedRange<Int>, near guess: Int, where holds: (Int) -> Bool) -> Int {
    var (low, high) = (range.lowerBound, range.upperBound)
    var (middle, step) = (min(max(guess, low), high - 1), 1)
    while low < high {
      if holds(middle) {
        high = middle
        middle = max(low, high - step)
      } else {
        low = middle + 1
        middle = min(high - 1, low + step)
      }
      // After the steps have passed the result, the rest is halved.
      step = step < (high - low) / 2 ? 2 * step : max(1, (high - low) / 2)
    }
    return low
  }
}

/// A percentile of values: the smallest of the values for which at least `perMille` thousandths of all values
/// are equal to it or smaller.
package struct Percentile: Hashable, Comparable, Sendable {
  /// The share of the values that are at or below the percentile, in thousandths: 500 for the median. From 1
  /// to 999.
  package let perMille: Int

  /// Makes a percentile from a share in thousandths.
  package init(perMille: Int) { self.perMille = perMille }

  /// The median.
  package static let p50 = Percentile(perMille: 500)
  /// 90 %.
  package static let p90 = Percentile(perMille: 900)
  /// 95 %.
  package static let p95 = Percentile(perMille: 950)
  /// 99 %.
  package static let p99 = Percentile(perMille: 990)
  /// 99.9 %.
  package static let p999 = Percentile(perMille: 999)
  /// The percentiles that a report contains when there are enough values.
  package static let reported = [p50, p90, p95, p99, p999]

  /// The percentile as a share of all values, 0 to 1.
  package var share: Double { Double(perMille) / 1000 }
  /// The name, such as `p50` or `p99.9`.
  package var name: String {
    "p\(perMille / 10)" + (perMille % 10 == 0 ? "" : ".\(perMille % 10)")
  }
  /// Orders percentiles by their share.
  package static func < (a: Self, b: Self) -> Bool { a.perMille < b.perMille }

  /// The rank, from 1, of the percentile's value among values in ascending order: the smallest rank that is
  /// at least `share` times the number of values.
  ///
  /// - Parameter count: the number of values.
  package func nearestRank(of count: Int) -> Int { max(1, (perMille * count + 999) / 1000) }
}
