/// How much the values of a series depend on the values before them. What slows one request down also slows
/// the next one down, so such values carry less information than the same number of independent values. A
/// test that treats them as independent finds differences that do not exist.
///
/// `factor` is the larger of two estimates, because each estimate fails on different series:
///
/// - The first estimate uses only the correlation between neighbouring values, as if the series were
///   autoregressive of order 1. It is exact when dependence does not reach far, and stable with few values.
/// - The second estimate is the initial monotone sequence of Geyer (1992). It detects a weak dependence that
///   reaches far.
///
/// Both estimates are corrected for their bias. The factor is 1 when the first autocorrelation does not
/// exceed its standard error.
package struct SerialDependence: Hashable, Sendable {
  /// The variance of the mean of the values, divided by the variance that it would have if the values were
  /// independent; at least 1.
  package let factor: Double
  /// The first autocorrelation: the correlation between neighbouring values, from -1 to 1, without the
  /// correction for bias.
  package let autocorrelation: Double
  /// The number of independent values that would carry the same information. At least 3 for dependent values.
  package let effectiveCount: Double

  /// The minimum number of values for an estimate. A shorter series counts as independent.
  private static let fewest = 10
  /// The longest distance between two values that the second estimate takes into account.
  private static let longestLag = 100

  /// Estimates the dependence of values in the order of their measurement.
  package init(_ values: [Double]) {
    let count = values.count
    let n = Double(count)
    let lags = min(count / 2, Self.longestLag)
    let mean = values.reduce(0, +) / max(n, 1)
    let centred = values.map { $0 - mean }
    let variance = centred.reduce(0) { $0 + $1 * $1 }
    guard count >= Self.fewest, variance > 0 else {
      (factor, autocorrelation, effectiveCount) = (1, 0, n)
      return
    }
    /// The correlation between values at a distance of `lag`.
    func correlation(_ lag: Int) -> Double {
      var sum = 0.0
      for index in lag..<count { sum += centred[index] * centred[index - lag] }
      return sum / variance
    }
    let first = correlation(1)
    autocorrelation = first
    guard first > 1 / n.squareRoot() else {
      (factor, effectiveCount) = (1, n)
      return
    }
    // Kendall's bias correction of the first autocorrelation.
    let corrected = min(0.97, first + (1 + 3 * first) / n)
    let autoregressive = (1 + corrected) / (1 - corrected)
    // The initial monotone sequence consists of sums of two neighbouring autocorrelations. For a reversible
    // chain these sums are positive and decreasing. The loop limits each sum to the sum before it, and ends
    // at the first sum that is not positive.
    var sum = 1 + first
    var last = sum
    var lag = 2
    while lag + 1 <= lags {
      let pair = min(last, correlation(lag) + correlation(lag + 1))
      if pair <= 0 { break }
      sum += pair
      last = pair
      lag += 2
    }
    let sequence = max(1, 2 * sum - 1)
    factor = max(autoregressive, sequence * (1 + 2 * sequence / n))
    effectiveCount = max(3, n / factor)
  }
}
