/// The power of the signed-rank test for normally distributed differences. The efficiency compared with the t
/// test is then 3/π; for differences with long tails it is higher.
package enum SignedRankPower {
  /// The probability of detecting a shift.
  ///
  /// - Parameters:
  ///   - shift: the true difference.
  ///   - deviation: the standard deviation of the paired differences, in the unit of `shift`.
  ///   - count: the number of rounds.
  ///   - factor: `SerialDependence.factor`.
  package static func power(
    shift: Double, deviation: Double, count: Int, factor: Double = 1, alpha: Double = 0.05
  ) -> Double {
    let scaled = abs(shift) / deviation * (Double(count) / factor * 3 / .pi).squareRoot()
    let critical = -NormalDistribution.quantile(alpha / 2)
    return NormalDistribution.upperTail(critical - scaled) + NormalDistribution.upperTail(critical + scaled)
  }

  /// The total number of rounds that a run needs to detect a shift with a probability of 80 %, estimated from
  /// the interval of a shorter run.
  ///
  /// - Parameters:
  ///   - halfWidth: half of the width of the shift's interval in the shorter run.
  ///   - count: the number of rounds of the shorter run.
  package static func rounds(
    for shift: Double, halfWidth: Double, count: Int, confidence: Double
  ) -> Int {
    let critical = -NormalDistribution.quantile((1 - confidence) / 2)
    let ratio = (critical - NormalDistribution.quantile(0.2)) / critical * halfWidth / abs(shift)
    return max(count, Int((Double(count) * ratio * ratio).rounded(.up)))
  }
}
