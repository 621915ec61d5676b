/// The distribution of the times of requests, in microseconds.
package struct Distribution: Hashable, Sendable {
  /// A percentile for which there are enough samples, with its confidence interval. All values are in
  /// microseconds.
  package struct Entry: Hashable, Sendable {
    /// The percentile.
    package let percentile: Percentile
    /// The value of the percentile. `nil` when its rank belongs to a timeout, whose time is unknown.
    package let value: Int64?
    /// The lower end of the confidence interval. `nil` when its rank belongs to a timeout.
    package let low: Int64?
    /// The upper end of the confidence interval. `nil` when its rank belongs to a timeout.
    package let high: Int64?
  }

  /// The number of values, without the timeouts.
  package let count: Int
  /// The number of requests that timed out. `count` does not include them. All that is known of their times
  /// is that they exceed the time limit.
  package let timeouts: Int
  /// The smallest value in microseconds; `nil` without values.
  package let minimum: Int64?
  /// The largest value in microseconds, without the timeouts; `nil` without values.
  package let maximum: Int64?
  /// The mean of the values in microseconds, without the timeouts; `nil` without values.
  package let mean: Double?
  /// The median absolute deviation from the median, in microseconds, without the timeouts; `nil` without
  /// values.
  package let medianDeviation: Int64?
  /// The percentiles of `Percentile.reported` that have enough samples.
  package let percentiles: [Entry]
  /// The histogram of the values, without the timeouts. Histograms of several runs can be added up;
  /// percentiles cannot.
  package let histogram: HDRHistogram

  /// The number of requests that have a rank: values and timeouts.
  package var total: Int { count + timeouts }

  /// Computes the distribution of times.
  ///
  /// - Parameters:
  ///   - values: the times in microseconds, in any order.
  ///   - timeouts: the number of requests that timed out, in addition to `values`. They have the highest
  ///     ranks. If they had no ranks, a target would look faster the more requests it loses.
  ///   - order: decides how many values and timeouts a percentile needs, and computes the intervals.
  package init(_ values: [Int64], timeouts: Int = 0, order: OrderStatistics = OrderStatistics()) {
    let sorted = values.sorted()
    let total = sorted.count + timeouts
    count = sorted.count
    self.timeouts = timeouts
    minimum = sorted.first
    maximum = sorted.last
    mean = sorted.isEmpty ? nil : sorted.reduce(0.0) { $0 + Double($1) } / Double(sorted.count)
    medianDeviation = Self.median(sorted).flatMap { median in
      Self.median(sorted.map { abs($0 - median) }.sorted())
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

  /// The median of values in ascending order, by nearest rank.
  private static func median(_ sorted: [Int64]) -> Int64? {
    sorted.isEmpty ? nil : sorted[Percentile.p50.nearestRank(of: sorted.count) - 1]
  }

  /// A percentile, or `nil` when there are too few samples for it.
  package func entry(_ percentile: Percentile) -> Entry? { percentiles.first { $0.percentile == percentile } }

  /// The value of a percentile. `nil` when there are too few samples for it, and when its rank belongs to a
  /// timeout.
  package func value(_ percentile: Percentile) -> Int64? { entry(percentile)?.value }
}
