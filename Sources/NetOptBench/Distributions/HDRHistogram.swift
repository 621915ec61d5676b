/// A histogram of times with three significant digits from 1 µs to 60 s, in the layout of HdrHistogram
/// (http://hdrhistogram.org). Histograms, unlike percentiles, can be added up without loss.
///
/// Each counter counts the values of a small range. The first bucket has 2048 ranges (sub-buckets) of 1 µs
/// and begins at 0. Each further bucket also begins at 0, and its 2048 sub-buckets are twice as wide as those
/// of the bucket before it.
package struct HDRHistogram: Hashable, Sendable {
  /// The largest value in microseconds (60 s). Larger values count as this value.
  package static let highest: Int64 = 60_000_000
  /// The number of significant decimal digits.
  static let digits = 3
  /// The binary logarithm of `half`.
  private static let halfMagnitude = 10
  /// Half the number of sub-buckets of a bucket. A bucket has 2048 sub-buckets: the smallest power of 2 that
  /// is at least 2 · 10³, which three significant digits require.
  private static let half = 1 << halfMagnitude
  /// The number of all counters, stored or not. The first bucket has a counter for each of its sub-buckets.
  /// In every further bucket, only the upper half of the sub-buckets has counters, because the bucket before
  /// it covers the values of the lower half.
  static let mostCounters = index(of: highest) + 1

  /// The stored counters: from the first nonzero counter to the last nonzero counter. The times of a target
  /// lie close together, so this saves most of the memory.
  private var counts: [UInt64] = []
  /// The index of the first stored counter among all counters.
  private var first = 0
  /// The number of values in the histogram; at most `Int64.max`.
  package private(set) var total: UInt64 = 0

  /// Makes an empty histogram.
  package init() {}

  /// Adds a value in microseconds `count` times. A negative value counts as 0, and a value above `highest` as
  /// `highest`.
  package mutating func record(_ value: Int64, count: UInt64 = 1) {
    add(count, at: Self.index(of: min(max(value, 0), Self.highest)))
  }

  /// Adds all values of another histogram.
  package mutating func add(_ other: HDRHistogram) {
    for (index, count) in other.counted { add(count, at: index) }
  }

  /// Adds `count` to a counter, or less, so that `total` does not exceed `Int64.max`.
  ///
  /// - Parameter index: the counter's index among all counters.
  mutating func add(_ count: UInt64, at index: Int) {
    let count = min(count, UInt64(Int64.max) - total)
    guard count > 0 else { return }
    if counts.isEmpty { first = index }
    if index < first {
      counts.insert(contentsOf: repeatElement(0, count: first - index), at: 0)
      first = index
    }
    let offset = index - first
    if offset >= counts.count { counts += repeatElement(0, count: offset + 1 - counts.count) }
    counts[offset] += count
    total += count
  }

  /// The value at a rank, in microseconds: the largest value in the range of the counter that the rank
  /// belongs to, as in HdrHistogram.
  ///
  /// - Parameter rank: the rank in ascending order, from 1.
  /// - Returns: `nil` when the rank exceeds the number of values.
  package func value(atRank rank: UInt64) -> Int64? {
    var seen: UInt64 = 0
    for (index, count) in counted {
      seen += count
      if seen >= rank { return Self.range(of: index).upperBound }
    }
    return nil
  }

  /// The nonzero counters in ascending order, each with its range of values in microseconds.
  package var buckets: [(values: ClosedRange<Int64>, count: UInt64)] {
    counted.map { (Self.range(of: $0.index), $0.count) }
  }

  /// The number of counters that are stored, zeros between nonzero counters included.
  var counters: Int { counts.count }

  /// The nonzero counters in ascending order, each with its index among all counters.
  var counted: some Sequence<(index: Int, count: UInt64)> {
    counts.indices.lazy.filter { counts[$0] > 0 }.map { (first + $0, counts[$0]) }
  }

  /// The index of the counter that counts a value. The value must not be negative.
  private static func index(of value: Int64) -> Int {
    let bucket = max(0, 63 - (value | 1).leadingZeroBitCount - halfMagnitude)
    return (bucket + 1) << halfMagnitude + Int(value >> Int64(bucket)) - half
  }

  /// The range of values that a counter counts.
  private static func range(of index: Int) -> ClosedRange<Int64> {
    let bucket = max(0, index >> halfMagnitude - 1)
    let low = Int64(index < 2 * half ? index : index & (half - 1) + half) << Int64(bucket)
    return low...(low + 1 << Int64(bucket) - 1)
  }
}
