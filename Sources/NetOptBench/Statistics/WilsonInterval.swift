/// The interval by Wilson (1927) for a share: of failures, for instance.
package enum WilsonInterval {
  /// The interval; all from 0 to 1 without any trials.
  package static func interval(_ successes: Int, of trials: Int, confidence: Double) -> ClosedRange<Double> {
    guard trials > 0 else { return 0...1 }
    let z = -NormalDistribution.quantile((1 - confidence) / 2)
    let n = Double(trials)
    let share = Double(successes) / n
    let scale = 1 + z * z / n
    let centre = (share + z * z / (2 * n)) / scale
    let half = z / scale * (share * (1 - share) / n + z * z / (4 * n * n)).squareRoot()
    // At the ends the exact value is 0 and 1, which rounding may miss.
    return (successes == 0 ? 0 : max(0, centre - half))...(successes == trials ? 1 : min(1, centre + half))
  }
}
