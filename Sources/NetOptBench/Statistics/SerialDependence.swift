/// The serial dependence of a series: the loss of information compared with the same number of independent
/// values. A cause that slows one request down slows the next request down as well. A test that treats such
/// requests as independent finds differences that do not exist.
///
/// The factor is the variance of the mean, divided by the variance for the same number of independent values.
/// It is the larger of two estimates, because each estimate fails on different series:
///
/// - The first autocorrelation alone, as if the series were autoregressive of order 1. This estimate is exact
///   for short memory, and stable with few values.
/// - The initial monotone sequence of Geyer (1992), which detects a long and weak memory.
///
/// Both estimates are corrected for their bias. The factor is 1 when the first autocorrelation does not
/// exceed its standard error.
package struct SerialDependence: Hashable, Sendable {
  /// The variance of the mean, divided by the variance for the same number of independent values; at least 1.
  package let factor: Double
  /// The first autocorrelation.
  package let autocorrelation: Double
  /// The number of independent values that carry the same information.
  package let effectiveCount: Double

  /// The smallest number of values from which dependence is estimated.
  private static let fewest = 10
  /// The longest lag in the estimate.
  private static let longestLag = 100

  /// Estimates the dependence of a series.
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
    // The initial monotone sequence: sums of two neighbouring autocorrelations. For a reversible chain these
    // sums are positive and decreasing. The loop caps each sum at the previous sum, and ends at the first sum
    // that is not positive.
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
