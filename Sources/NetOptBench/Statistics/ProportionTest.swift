import Glibc

/// Whether two shares are alike: Fisher's exact test, and for counts that are large in every respect that of two proportions with the
/// variance of the common share, which is the same one then.
package struct ProportionTest: Hashable, Sendable {
  /// How p came about.
  package enum Method: String, Sendable {
    /// By counting all tables.
    case exact = "fisher exact"
    /// By the normal approximation.
    case normal = "two proportions"
  }

  /// The probability of shares as different or more, if both were alike.
  package let p: Double
  /// How p came about.
  package let method: Method

  /// The most tables that are looked at one by one.
  private static let mostTerms = 10_000.0

  /// Compares `a.0` of `a.1` with `b.0` of `b.1`.
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

  /// The probability of all tables with these margins that are as unlikely as the one that was found, or more: as many terms as the
  /// smallest margin has.
  private static func exact(_ found: Double, _ m: Double, _ n: Double, _ count: Double) -> Double {
    let logGamma = BetaDistribution.logGamma
    func choose(_ n: Double, _ k: Double) -> Double {
      logGamma(n + 1) - logGamma(k + 1) - logGamma(n - k + 1)
    }
    let (low, high) = (max(0, count - n), min(m, count))
    let whole = choose(m + n, count)
    func likelihood(_ k: Double) -> Double { exp(choose(m, k) + choose(n, count - k) - whole) }
    // Rounding must not leave out tables that are as likely as the one that was found.
    let limit = likelihood(found) * (1 + 1e-7)
    var sum = 0.0
    for k in stride(from: low, through: high, by: 1) {
      let value = likelihood(k)
      if value <= limit { sum += value }
    }
    return min(1, sum)
  }
}
