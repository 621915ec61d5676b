import Glibc

/// The standard normal distribution.
enum NormalDistribution {
  /// The probability of a value above `z`.
  static func upperTail(_ z: Double) -> Double { 0.5 * erfc(z / 2.0.squareRoot()) }

  /// The value below which `share` of the distribution lies; infinite for a share of 0 or 1. The function
  /// starts with the rational approximation of P. J. Acklam (2003). One step of Halley's method then makes
  /// the result exact to the last digits.
  static func quantile(_ share: Double) -> Double {
    guard share > 0 else { return -.infinity }
    guard share < 1 else { return .infinity }
    let start = approximation(share)
    let error = upperTail(-start) - share
    let step = error * (2 * Double.pi).squareRoot() * exp(start * start / 2)
    return start - step / (1 + start * step / 2)
  }

  /// The rational approximation of Acklam.
  private static func approximation(_ share: Double) -> Double {
    if share > 0.5 { return -approximation(1 - share) }
    if share < 0.02425 {
      let q = (-2 * log(share)).squareRoot()
      return polynomial(
        [
          -7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00, -2.549732539343734e+00,
          4.374664141464968e+00, 2.938163982698783e+00,
        ], q)
        / polynomial(
          [
            7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00, 1,
          ], q)
    }
    let q = share - 0.5
    let r = q * q
    return q
      * polynomial(
        [
          -3.969683028665376e+01, 2.209460984245205e+02, -2.759285104469687e+02, 1.383577518672690e+02,
          -3.066479806614716e+01, 2.506628277459239e+00,
        ], r)
      / polynomial(
        [
          -5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02, 6.680131188771972e+01,
          -1.328068155288572e+01, 1,
        ], r)
  }

  /// Evaluates a polynomial with Horner's rule. The coefficient of the highest power comes first.
  private static func polynomial(_ coefficients: [Double], _ x: Double) -> Double {
    coefficients.reduce(0) { $0 * x + $1 }
  }
}
