/// The rank-sum test of Mann and Whitney over the buckets of two histograms, each of which is a tie; timeouts are the largest
/// values. Values that depend on those before them say less than as many independent ones (`SerialDependence`): the variance is
/// larger by the factors of both, and Student's t takes the place of the normal distribution.
struct RankSum {
  /// The probability of ranks as different or more, if nothing has changed.
  let p: Double

  /// Compares.
  ///
  /// - Parameter factors: by how much the variance of a mean is larger than that of as many independent values.
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
    // The mean ranks vary by their factors, each in inverse proportion to its count.
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
