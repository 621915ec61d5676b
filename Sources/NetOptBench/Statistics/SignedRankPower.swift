import NetOptCore

/// The power of the signed-rank test: the probability that it detects a difference. The calculation is for
/// normally distributed differences, for which the test has 3/π of the efficiency of the t test. With long
/// tails its efficiency is higher.
package enum SignedRankPower {
  /// The probability that the test detects a shift.
  ///
  /// - Parameters:
  ///   - shift: the true shift.
  ///   - deviation: the standard deviation of the paired differences, in the unit of `shift`.
  ///   - count: the number of rounds.
  ///   - factor: the factor of the serial dependence (`SerialDependence.factor`); 1 for independent rounds.
  ///   - alpha: the significance level.
  package static func power(
    shift: Double, deviation: Double, count: Int, factor: Double = 1, alpha: Double = 0.05
  ) -> Double {
    let scaled = abs(shift) / deviation * (Double(count) / factor * 3 / .pi).squareRoot()
    let critical = -NormalDistribution.quantile(alpha / 2)
    return NormalDistribution.upperTail(critical - scaled) + NormalDistribution.upperTail(critical + scaled)
  }

  /// The number of rounds that a run needs to detect a shift with a probability of 80 %, estimated from a
  /// shorter run. The result is at least the number of rounds of the shorter run.
  ///
  /// - Parameters:
  ///   - shift: the shift to detect.
  ///   - halfWidth: half of the width of the shift's confidence interval in the shorter run, in the unit of
  ///     `shift`.
  ///   - count: the number of rounds of the shorter run.
  ///   - confidence: the confidence of that interval.
  package static func rounds(
    for shift: Double, halfWidth: Double, count: Int, confidence: Double
  ) -> Int {
    let critical = -NormalDistribution.quantile((1 - confidence) / 2)
    let ratio = (critical - NormalDistribution.quantile(0.2)) / critical * halfWidth / abs(shift)
    return max(count, Int(clamped: (Double(count) * ratio * ratio).rounded(.up)))
  }
}
