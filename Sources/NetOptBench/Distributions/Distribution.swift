/// The distribution of values in microseconds.
package struct Distribution: Hashable, Sendable {
  /// A percentile with enough samples, and its confidence interval.
  package struct Entry: Hashable, Sendable {
    /// The percentile.
    package let percentile: Percentile
    /// The value, or `nil` when it lies among the timeouts.
    package let value: Int64?
    /// The lower end of the interval, or `nil` when it lies among the timeouts.
    package let low: Int64?
    /// The upper end of the interval, or `nil` when it lies among the timeouts.
    package let high: Int64?
  }

  /// The number of values.
  package let count: Int
  /// The number of requests that timed out, in addition to the values. Their times are known only to exceed
  /// the time limit.
  package let timeouts: Int
  /// The smallest value.
  package let minimum: Int64?
  /// The largest value.
  package let maximum: Int64?
  /// The mean.
  package let mean: Double?
  /// The median absolute deviation from the median.
  package let deviation: Int64?
  /// The percentiles with enough samples.
  package let percentiles: [Entry]
  /// The values without the timeouts. Histograms of several runs can be added up.
  package let histogram: HDRHistogram

  /// The number of requests that take part in the ranks: values and timeouts.
  package var total: Int { count + timeouts }

  /// Describes values, in any order.
  ///
  /// - Parameter timeouts: the number of requests that timed out, in addition to `values`. They take part in
  ///   the ranks as the largest values. Without them, a target would look faster the more requests it loses.
  package init(_ values: [Int64], timeouts: Int = 0, order: OrderStatistics = OrderStatistics()) {
    let sorted = values.sorted()
    let total = sorted.count + timeouts
    count = sorted.count
    self.timeouts = timeouts
    minimum = sorted.first
    maximum = sorted.last
    mean = sorted.isEmpty ? nil : sorted.reduce(0.0) { $0 + Double($1) } / Double(sorted.count)
    deviation = Self.median(sorted).flatMap { median in Self.median(sorted.map { abs($0 - median) }.sorted())
    }
    percentiles = Percentile.reported.compactMap { percentile in
      guard let ranks = order.ranks(of: percentile, count: total) else { return nil }
      func value(_ rank: Int) -> Int64? { rank <= sorted.count ? sorted[rank - 1] : nil }
      return Entry(
        percentile: percentile, value: value(percentile.nearestRank(of: total)),
        low: value(ranks.lowerBound), high: value(ranks.upperBound))
    }
    var histogram = HDRHistogram()
    for value in sorted { histogram.record(value) }
    self.histogram = histogram
  }

  private static func median(_ sorted: [Int64]) -> Int64? {
    sorted.isEmpty ? nil : sorted[Percentile.p50.nearestRank(of: sorted.count) - 1]
  }

  /// A percentile, or `nil` when there are too few samples for it.
  package func entry(_ percentile: Percentile) -> Entry? { percentiles.first { $0.percentile == percentile } }

  /// The value of a percentile, or `nil` when there are too few samples for it or it lies among the timeouts.
  package func value(_ percentile: Percentile) -> Int64? { entry(percentile)?.value }
}
