/// How much less a series says than as many independent values would. What slows one request down slows the next one down as
/// well, and a test that takes them for independent finds differences where there are none.
///
/// The factor is the variance of the mean by that of as many independent values, the larger of two estimates, because they
/// fail on different series: by the first autocorrelation alone, as if the series were autoregressive of order 1 (exact for
/// short memory, and steady with few values), and by the initial monotone sequence of Geyer (1992), which finds a memory that
/// is long and faint. Both are corrected for their bias. Series whose first autocorrelation is within its standard error of
/// none are left as they are.
package struct SerialDependence: Hashable, Sendable {
  /// The variance of the mean by that of as many independent values; 1 or more.
  package let factor: Double
  /// The first autocorrelation.
  package let autocorrelation: Double
  /// How many independent values would say as much.
  package let effectiveCount: Double

  /// With fewer values nothing can be said of what they remember.
  private static let fewest = 10
  /// The longest lag that is looked at.
  private static let longestLag = 100

  /// Looks at a series.
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
    // Kendall's correction of the bias of the first autocorrelation.
    let corrected = min(0.97, first + (1 + 3 * first) / n)
    let autoregressive = (1 + corrected) / (1 - corrected)
    // Sums of two neighbours, which are positive and fall for a reversible chain, as long as they do.
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
