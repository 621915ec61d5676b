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
    let logGamma = BetaDistribution.logGamma
    func choose(_ n: Double, _ k: Double) -> Double {
      logGamma(n + 1) - logGamma(k + 1) - logGamma(n - k + 1)
    }
    let (low, high) = (max(0, count - n), min(m, count))
    let whole = choose(m + n, count)
    func likelihood(_ k: Double) -> Double { exp(choose(m, k) + choose(n, count - k) - whole) }
    // Because of rounding, a table that is exactly as likely as the observed table may seem more likely. The
    // tolerance includes such tables.
    let limit = likelihood(found) * (1 + 1e-7)
    var sum = 0.0
    for k in stride(from: low, through: high, by: 1) {
      let value = likelihood(k)
      if value <= limit { sum += value }
    }
    return min(1, sum)
  }
}
