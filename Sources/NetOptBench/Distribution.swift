/// How values are distributed. All of them in microseconds.
package struct Distribution: Hashable, Sendable {
  /// A percentile for which there are enough samples.
  package struct Percentile: Hashable, Sendable {
    /// Which one: 50, 90, 95 or 99.
    package let percentile: Int
    /// The value, or `nil` when it lies among the requests that timed out.
    package let value: Int64?
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
  package let percentiles: [Percentile]

  /// How many requests take part in the ranks.
  package var total: Int { count + timeouts }

  /// Describes values, in any order.
  ///
  /// - Parameter timeouts: how many requests timed out beside them. They take part in the ranks as the largest values:
  ///   to leave them out would make a target look the faster the more it loses.
  package init(_ values: [Int64], timeouts: Int = 0) {
    let sorted = values.sorted()
    let total = sorted.count + timeouts
    count = sorted.count
    self.timeouts = timeouts
    minimum = sorted.first
    maximum = sorted.last
    mean = sorted.isEmpty ? nil : sorted.reduce(0.0) { $0 + Double($1) } / Double(sorted.count)
    deviation = Percentiles.nearestRank(50, of: sorted, total: sorted.count).flatMap { median in
      let distances = sorted.map { abs($0 - median) }.sorted()
      return Percentiles.nearestRank(50, of: distances, total: distances.count)
    }
    percentiles = Percentiles.reported.filter { total >= Percentiles.needed(for: $0) }.map {
      Percentile(percentile: $0, value: Percentiles.nearestRank($0, of: sorted, total: total))
    }
  }

  /// The value of a percentile, or `nil` when there are too few samples for it or it lies among the timeouts.
  package func value(_ percentile: Int) -> Int64? {
    percentiles.first { $0.percentile == percentile }?.value
  }
}
