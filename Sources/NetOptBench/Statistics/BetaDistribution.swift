import Glibc

/// The beta distribution. The binomial distribution and Student's t distribution are computed from it.
enum BetaDistribution {
  /// The probability that a beta-distributed value is at most `x`: the regularised incomplete beta function.
  /// The method of Lentz computes it from the continued fraction of DLMF 8.17.22. For a large `x` the
  /// function computes the upper tail instead, because the fraction converges faster there.
  ///
  /// - Parameters:
  ///   - a: the first shape parameter, above 0.
  ///   - b: the second shape parameter, above 0.
  static func lowerTail(_ x: Double, _ a: Double, _ b: Double) -> Double {
    guard x > 0 else { return 0 }
    guard x < 1 else { return 1 }
    let front = exp(
      logGamma(a + b) - logGamma(a) - logGamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2) { return front * fraction(x, a, b) / a }
    return 1 - front * fraction(1 - x, b, a) / b
  }

  /// The continued fraction of DLMF 8.17.22, computed with Lentz's method.
  private static func fraction(_ x: Double, _ a: Double, _ b: Double) -> Double {
    let tiny = 1e-300
    func nonzero(_ value: Double) -> Double { abs(value) < tiny ? tiny : value }
    var c = 1.0
    var d = 1 / nonzero(1 - (a + b) * x / (a + 1))
    var result = d
    // The number of terms grows with the square root of the larger parameter.
    for step in 1...20_000 {
      let m = Double(step)
      for term in [
        m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
        -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
      ] {
        d = 1 / nonzero(1 + term * d)
        c = nonzero(1 + term / c)
        result *= c * d
      }
      if abs(c * d - 1) < 1e-15 { break }
    }
    return result
  }

  /// The logarithm of the gamma function.
  static func logGamma(_ x: Double) -> Double {
    // lgamma_r(3), because lgamma(3) stores the sign in a variable that all threads share.
    var sign: Int32 = 0
    return lgamma_r(x, &sign)
  }
}

/// The binomial distribution.
enum BinomialDistribution {
  /// The probability of at most `successes` successes in `trials` trials.
  ///
  /// - Parameter probability: the probability of a success in one trial.
  static func lowerTail(_ successes: Int, of trials: Int, probability: Double) -> Double {
    if successes < 0 { return 0 }
    if successes >= trials { return 1 }
    return BetaDistribution.lowerTail(1 - probability, Double(trials - successes), Double(successes + 1))
  }
}

/// Student's t distribution.
enum StudentDistribution {
  /// The probability of a value above `t`, for `t` ≥ 0.
  ///
  /// - Parameter freedom: the degrees of freedom, above 0; not necessarily a whole number.
  static func upperTail(_ t: Double, freedom: Double) -> Double {
    0.5 * BetaDistribution.lowerTail(freedom / (freedom + t * t), freedom / 2, 0.5)
  }

  /// The value above which `share` of the distribution lies, for a share below one half. Found by bisection,
  /// to the last digit.
  static func upperQuantile(_ share: Double, freedom: Double) -> Double {
    var (low, high) = (0.0, 1.0)
    while upperTail(high, freedom: freedom) > share, high < 1e12 { high *= 2 }
    while true {
      let middle = (low + high) / 2
      if middle <= low || middle >= high { return middle }
      if upperTail(middle, freedom: freedom) > share { low = middle } else { high = middle }
    }
  }
}
