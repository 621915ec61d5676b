import Glibc

/// Tests whether two shares are equal. The test is Fisher's exact test on the table of successes and
/// failures. When all row and column sums of the table are large, it is the normal approximation with the
/// pooled share, which gives the same result for large counts.
package struct ProportionTest: Hashable, Sendable {
  /// The method that computed p.
  package enum Method: String, Sendable {
    /// Fisher's exact test.
    case exact = "fisher exact"
    /// The normal approximation.
    case normal = "two proportions"
  }

  /// The two-sided p value: the probability of shares at least as different when the true shares are equal.
  package let p: Double
  /// The method that computed p.
  package let method: Method

  /// The test is exact when the smallest of the row and column sums is at most this number. The exact test
  /// adds up at most one term more than this sum.
  private static let mostTerms = 10_000.0

  /// Compares the share `a.count / a.of` with the share `b.count / b.of`.
  package init(_ a: (count: Int, of: Int), _ b: (count: Int, of: Int)) {
    let (m, n) = (Double(a.of), Double(b.of))
    let count = Double(a.count + b.count)
    let rest = m + n - count
    guard m > 0, n > 0, count > 0, rest > 0 else {
      (p, method) = (1, .exact)
      return
    }
    if min(min(m, n), min(count, rest)) <= Self.mostTerms {
      (p, method) = (Self.exact(Double(a.count), m, n, count), .exact)
      return
    }
    let share = count / (m + n)
    let deviation = (share * (1 - share) * (1 / m + 1 / n)).squareRoot()
    let z = abs(Double(a.count) / m - Double(b.count) / n) / deviation
    (p, method) = (min(1, 2 * NormalDistribution.upperTail(z)), .normal)
  }

  /// The total probability of all tables with the same row and column sums that are at most as likely as the
  /// observed table.
  ///
  /// - Parameters:
  ///   - found: the count of the first share.
  ///   - m: the number of trials of the first share.
  ///   - n: the number of trials of the second share.
  ///   - count: the sum of both counts.
  private static func exact(_ found: Double, _ m: Double, _ n: Double, _ count: Double) -> Double {
    let (low, high) = (max(0, count - n), min(m, count))
    // The likelihoods of the tables, relative to that of the most likely one, from which they follow by
    // recurrence. This takes a hundredth of the time of logarithms of factorials, and loses nothing when the
    // numbers of trials are large.
    let mode = min(max(((m + 1) * (count + 1) / (m + n + 2)).rounded(.down), low), high)
    var weights = [Double](repeating: 0, count: Int(high - low) + 1)
    func walk(_ step: Double, _ ratio: (Double) -> Double) {
      var (k, weight) = (mode, 1.0)
      while k >= low, k <= high, weight > 0 {
        weights[Int(k - low)] = weight
        weight *= ratio(k)
        k += step
      }
    }
    walk(1) { k in (m - k) / (k + 1) * ((count - k) / (n - count + k + 1)) }
    walk(-1) { k in k / (m - k + 1) * ((n - count + k) / (count - k + 1)) }
    // Because of rounding, a table that is exactly as likely as the observed table may seem more likely. The
    // tolerance includes such tables.
    let limit = weights[Int(found - low)] * (1 + 1e-7)
    var (sum, total) = (0.0, 0.0)
    for weight in weights {
      total += weight
      if weight <= limit { sum += weight }
    }
    return sum / total
  }
}
