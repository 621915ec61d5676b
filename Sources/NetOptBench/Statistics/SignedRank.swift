import NetOptCore

/// Wilcoxon's signed-rank test of paired differences, with the shift of Hodges and Lehmann.
///
/// Zero differences get ranks like all others. Half of their ranks count as positive and half as negative.
/// Equal differences share the mean of their ranks. Without zeros, ties and serial dependence, p is exact for
/// up to 50 pairs. For more pairs, or with zeros or ties, p is the normal approximation with the correction
/// for ties.
///
/// When the signed ranks are serially dependent, the test multiplies the variance by
/// `SerialDependence.factor`, and uses Student's t distribution instead of the normal distribution. When in
/// addition all differences have the same sign, the ranks are not enough: they do not show how large the
/// differences are, and with few rounds p stays too large. For this case the test also divides the shift by
/// its standard error, and takes the smaller of the two p values. The ranks alone missed a shift of ten
/// standard deviations in 7 % of runs of 12 rounds.
package struct SignedRank: Sendable {
  /// The maximum number of pairs for which p is exact.
  package static let exactLimit = 50

  /// The method that computed p.
  package enum Method: String, Sendable {
    /// All combinations of signs are counted.
    case exact = "signed-rank exact"
    /// The normal approximation.
    case normal = "signed-rank normal"
    /// The approximation for serially dependent differences.
    case serial = "signed-rank serial"
  }

  /// The number of pairs, which is the number of differences.
  package let count: Int
  /// The sum of the ranks of the positive differences, plus half of the ranks of the zero differences.
  package let positive: Double
  /// The two-sided p value: the probability that `positive` is at least as far from its expected value,
  /// n(n+1)/4 for n pairs, when positive and negative differences are equally likely.
  package let p: Double
  /// The method that computed p.
  package let method: Method
  /// The serial dependence of the signed ranks. Its factor is 1 when the test does not take dependence into
  /// account.
  package let dependence: SerialDependence

  /// The differences in ascending order.
  private let sorted: [Double]
  /// `MidRanks.tieTerm` of the differences with their signs, which `interval` uses. `p` uses the tie term of
  /// the absolute values of the differences.
  private let fixedTies: Double

  /// Tests differences.
  ///
  /// - Parameters:
  ///   - differences: the differences, in the order of their measurement.
  ///   - isSerial: whether the test takes serial dependence into account. If not, this is the textbook test.
  package init(_ differences: [Double], isSerial: Bool = true) {
    let ranking = MidRanks(differences.map(abs))
    let n = Double(differences.count)
    var positive = 0.0
    var signed = [Double](repeating: 0, count: differences.count)
    var hasZeros = false
    for (index, difference) in differences.enumerated() {
      let rank = ranking.ranks[index]
      if difference > 0 {
        positive += rank
        signed[index] = rank
      } else if difference < 0 {
        signed[index] = -rank
      } else {
        positive += rank / 2
        hasZeros = true
      }
    }
    count = differences.count
    self.positive = positive
    sorted = differences.sorted()
    fixedTies = MidRanks(sorted).tieTerm
    dependence = SerialDependence(isSerial ? signed : [])
    let middle = n * (n + 1) / 4
    let variance = (n * (n + 1) * (2 * n + 1) - ranking.tieTerm / 2) / 24
    if dependence.factor > 1, variance > 0 {
      method = .serial
      let z = abs(positive - middle) / (variance * dependence.factor).squareRoot()
      let byRanks = min(1, 2 * StudentDistribution.upperTail(z, freedom: dependence.effectiveCount - 1))
      let isOneSided = positive == 0 || positive == 2 * middle
      p = isOneSided ? min(byRanks, Self.byDistance(differences, sorted, dependence)) : byRanks
    } else if count <= Self.exactLimit, !hasZeros, ranking.tieTerm == 0 {
      method = .exact
      p = SignedRankCounts(count).twoSided(positive)
    } else {
      method = .normal
      p =
        variance > 0
        ? min(1, 2 * NormalDistribution.upperTail(abs(positive - middle) / variance.squareRoot())) : 1
    }
  }

  /// The p value of the shift divided by the shift's standard error (Student's t distribution). The standard
  /// error is computed like that of the mean of serially dependent values. The differences and their signed
  /// ranks may have different serial dependence. The function uses the stronger of the two.
  ///
  /// - Parameters:
  ///   - differences: the differences, in the order of their measurement.
  ///   - sorted: the same differences in ascending order.
  ///   - dependence: the serial dependence of the signed ranks.
  private static func byDistance(
    _ differences: [Double], _ sorted: [Double], _ dependence: SerialDependence
  ) -> Double {
    guard let shift = shift(of: sorted) else { return 1 }
    let own = SerialDependence(differences)
    let n = Double(differences.count)
    let mean = differences.reduce(0, +) / n
    let variance = differences.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / (n - 1)
    let error = (variance * max(own.factor, dependence.factor) / n).squareRoot()
    let freedom = min(own.effectiveCount, dependence.effectiveCount) - 1
    return 2 * StudentDistribution.upperTail(abs(shift) / error, freedom: freedom)
  }

  /// The Hodges-Lehmann shift: the median of the means of all pairs of differences, each difference paired
  /// with itself included (Walsh averages); `nil` without differences. In the unit of the differences.
  package var shift: Double? { Self.shift(of: sorted) }

  /// The Hodges-Lehmann shift of differences in ascending order; `nil` without differences.
  private static func shift(of sorted: [Double]) -> Double? {
    if sorted.isEmpty { return nil }
    let averages = WalshAverages(sorted)
    let total = averages.count
    return (averages.smallest((total + 1) / 2) + averages.smallest(total / 2 + 1)) / 2
  }

  /// The confidence interval of the shift: all shifts that the test would not reject. `nil` when there are
  /// too few differences.
  package func interval(confidence: Double) -> ClosedRange<Double>? {
    let averages = WalshAverages(sorted)
    let total = averages.count
    let tail = (1 - confidence) / 2
    let rank: Int
    if method != .serial, count <= Self.exactLimit, fixedTies == 0 {
      rank = SignedRankCounts(count).largest(withTail: tail) + 1
    } else {
      let n = Double(count)
      let variance = (n * (n + 1) * (2 * n + 1) - fixedTies / 2) / 24
      let z =
        method == .serial
        ? StudentDistribution.upperQuantile(tail, freedom: dependence.effectiveCount - 1)
          * dependence.factor.squareRoot()
        : -NormalDistribution.quantile(tail)
      rank = Int(clamped: (Double(total) / 2 - z * max(0, variance).squareRoot()).rounded(.up))
    }
    // With few, strongly dependent rounds the rank can fall below 1. The interval then spans all Walsh
    // averages.
    let first = method == .serial ? max(1, rank) : rank
    guard first >= 1, first <= (total + 1) / 2 else { return nil }
    return averages.smallest(first)...averages.smallest(total + 1 - first)
  }
}

/// The exact distribution of the sum of the positive ranks when both signs are equally likely.
private struct SignedRankCounts {
  /// The probability of each sum; the index is the sum.
  private let shares: [Double]

  /// Makes the distribution for `count` differences without zeros and ties.
  init(_ count: Int) {
    var shares = [1.0]
    for rank in stride(from: 1, through: count, by: 1) {
      var next = [Double](repeating: 0, count: shares.count + rank)
      for (sum, share) in shares.enumerated() {
        next[sum] += share / 2
        next[sum + rank] += share / 2
      }
      shares = next
    }
    self.shares = shares
  }

  /// The probability of a sum at least as far from the expected sum as `sum`.
  func twoSided(_ sum: Double) -> Double {
    let near = min(Int(sum), shares.count - 1 - Int(sum))
    return min(1, 2 * shares.prefix(near + 1).reduce(0, +))
  }

  /// The largest sum for which the probability of this sum or a smaller one is at most `tail`; -1 when there
  /// is none.
  func largest(withTail tail: Double) -> Int {
    var total = 0.0
    for (sum, share) in shares.enumerated() {
      total += share
      if total > tail { return sum - 1 }
    }
    return shares.count - 1
  }
}
