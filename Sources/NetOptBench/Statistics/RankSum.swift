/// The rank-sum test of Mann and Whitney on two histograms. The values of a bucket are ties, and timeouts are
/// the largest values. Serially dependent values carry less information than the same number of independent
/// values (`SerialDependence`). In that case the test multiplies the variance by the factors of both samples,
/// and uses Student's t distribution instead of the normal distribution.
struct RankSum {
  /// The p value: the probability of rank sums at least as different when nothing has changed.
  let p: Double

  /// Compares two samples.
  ///
  /// - Parameter factors: for each sample, the factor by which serial dependence raises the variance of the
  ///   mean, compared with the same number of independent values.
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
    // The variance of each sample's mean rank is proportional to its factor and inversely proportional to its
    // count.
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
