/// How values are distributed. All of them in microseconds.
package struct Distribution: Hashable, Sendable {
  /// A percentile for which there are enough samples, with the interval that it lies in.
  package struct Entry: Hashable, Sendable {
    /// Which one.
    package let percentile: Percentile
    /// The value, or `nil` when it lies among the requests that timed out.
    package let value: Int64?
    /// The lower end of the interval, or `nil` when it lies among those.
    package let low: Int64?
    /// The upper end.
    package let high: Int64?
  }

  /// How many values there are.
  package let count: Int
  /// How many more requests timed out: values that are only known to be larger than the limit.
  package let timeouts: Int
  /// The smallest value.
  package let minimum: Int64?
  /// The largest value.
  package let maximum: Int64?
  /// The mean.
  package let mean: Double?
  /// The median absolute deviation from the median.
  package let deviation: Int64?
  /// The percentiles for which there are enough samples.
  package let percentiles: [Entry]
  /// The values, for being added to those of other runs; without the timeouts.
  package let histogram: HDRHistogram

  /// How many requests take part in the ranks.
  package var total: Int { count + timeouts }

  /// Describes values, in any order.
  ///
  /// - Parameter timeouts: how many requests timed out beside them. They take part in the ranks as the largest values:
  ///   to leave them out would make a target look the faster the more it loses.
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
