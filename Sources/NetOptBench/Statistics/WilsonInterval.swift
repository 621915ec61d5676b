/// Wilson's confidence interval (1927) of a share, such as the share of failed requests.
package enum WilsonInterval {
  /// The interval of the share `successes / trials`, within 0 to 1. It is 0 to 1 when there are no trials.
  /// `successes` is the number of trials that the share counts. For the share of failed requests, these are
  /// the failures.
  package static func interval(_ successes: Int, of trials: Int, confidence: Double) -> ClosedRange<Double> {
    guard trials > 0 else { return 0...1 }
    let z = -NormalDistribution.quantile((1 - confidence) / 2)
    let n = Double(trials)
    let share = Double(successes) / n
    let scale = 1 + z * z / n
    let centre = (share + z * z / (2 * n)) / scale
    let half = z / scale * (share * (1 - share) / n + z * z / (4 * n * n)).squareRoot()
    // The exact ends are 0 without successes and 1 without failures; rounding could miss them.
    return (successes == 0 ? 0 : max(0, centre - half))...(successes == trials ? 1 : min(1, centre + half))
  }
}
