/// The rank-sum test of Mann and Whitney on two histograms. The values that one counter counts are ties.
/// Timeouts are the largest values. Serially dependent values carry less information than the same number of
/// independent values (`SerialDependence`). For such values the test multiplies the variance by the factors
/// of both samples, and uses Student's t distribution instead of the normal distribution.
struct RankSum {
  /// The two-sided p value: the probability of rank sums at least as different when both samples have the
  /// same distribution.
  let p: Double

  /// Compares two samples.
  ///
  /// - Parameter factors: the factor of the serial dependence of each sample (`SerialDependence.factor`); 1
  ///   for independent values.
  init(_ a: SavedRun.Times, _ b: SavedRun.Times, factors: (Double, Double)) {
    var counts: [Int64: (Double, Double)] = [:]
    for bucket in a.histogram.buckets {
      counts[bucket.values.lowerBound, default: (0, 0)].0 += Double(bucket.count)
    }
    for bucket in b.histogram.buckets {
      counts[bucket.values.lowerBound, default: (0, 0)].1 += Double(bucket.count)
    }
    counts[.max] = (Double(a.timeouts), Double(b.timeouts))
    let (m, n) = (Double(a.total), Double(b.total))
    var (below, sum, ties) = (0.0, 0.0, 0.0)
    for key in counts.keys.sorted() {
      guard let (x, y) = counts[key] else { continue }
      let t = x + y
      sum += x * (below + (t + 1) / 2)
      ties += t * t * t - t
      below += t
    }
    // The variance of a sample's mean rank is proportional to the sample's factor, and inversely proportional
    // to its number of values.
    let factor = (factors.0 * n + factors.1 * m) / max(1, m + n)
    let variance = factor * m * n / 12 * (m + n + 1 - ties / max(1, (m + n) * (m + n - 1)))
    guard variance > 0 else {
      p = 1
      return
    }
    let z = abs(sum - m * (m + n + 1) / 2) / variance.squareRoot()
    p =
      factor > 1
      ? min(1, 2 * StudentDistribution.upperTail(z, freedom: max(1, m / factors.0 + n / factors.1 - 2)))
      : min(1, 2 * NormalDistribution.upperTail(z))
  }
}
