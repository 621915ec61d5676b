/// What the signed-rank test promises for differences that are normally distributed (its efficiency beside the t test is
/// then 3/π; for differences with long tails it is more).
package enum SignedRankPower {
  /// How likely a shift is found.
  ///
  /// - Parameters:
  ///   - shift: the true difference.
  ///   - deviation: the standard deviation of the paired differences, in the same unit.
  ///   - count: the number of rounds.
  ///   - factor: `SerialDependence.factor`.
  package static func power(
    shift: Double, deviation: Double, count: Int, factor: Double = 1, alpha: Double = 0.05
  ) -> Double {
    let scaled = abs(shift) / deviation * (Double(count) / factor * 3 / .pi).squareRoot()
    let critical = -NormalDistribution.quantile(alpha / 2)
    return NormalDistribution.upperTail(critical - scaled) + NormalDistribution.upperTail(critical + scaled)
  }

  /// How many rounds a run needs in all to find a shift in four of five runs, judged by the interval of one with fewer.
  ///
  /// - Parameters:
  ///   - halfWidth: half of the width of the interval for the shift.
  ///   - count: the rounds of the run that it is from.
  package static func rounds(
    for shift: Double, halfWidth: Double, count: Int, confidence: Double
  ) -> Int {
    let critical = -NormalDistribution.quantile((1 - confidence) / 2)
    let ratio = (critical - NormalDistribution.quantile(0.2)) / critical * halfWidth / abs(shift)
    return max(count, Int((Double(count) * ratio * ratio).rounded(.up)))
  }
}
