/// A histogram with buckets of constant relative width: three significant digits from 1 µs to 60 s, as HdrHistogram
/// (http://hdrhistogram.org) lays them out. Histograms can be added up without losing anything, which percentiles cannot.
package struct HDRHistogram: Hashable, Sendable {
  /// The largest value that is told from larger ones, in microseconds.
  package static let highest: Int64 = 60_000_000
  /// The digits that are kept.
  static let digits = 3
  /// 2048 sub-buckets: the smallest power of 2 that tells 2 · 10³ values apart.
  private static let halfMagnitude = 10
  private static let half = 1 << halfMagnitude
  /// How many counters there are: of the first bucket all, of the further ones the upper half.
  static let counters = index(of: highest) + 1

  /// How often each bucket was met; as long as the last one that was.
  private(set) var counts: [UInt64] = []
  /// How many values there are.
  package private(set) var total: UInt64 = 0

  /// Makes an empty histogram.
  package init() {}

  /// Adds a value in microseconds; what is beyond the range counts at its end.
  package mutating func record(_ value: Int64, count: UInt64 = 1) {
    add(count, at: Self.index(of: min(max(value, 0), Self.highest)))
  }

  /// Adds all of another histogram.
  package mutating func add(_ other: HDRHistogram) {
    for (index, count) in other.counts.enumerated() where count > 0 { add(count, at: index) }
  }

  /// Adds to a counter; sums that no counter can hold stay at the largest.
  mutating func add(_ count: UInt64, at index: Int) {
    if index >= counts.count { counts += repeatElement(0, count: index + 1 - counts.count) }
    let room = UInt64(Int64.max) - total
    counts[index] += min(count, room)
    total += min(count, room)
  }

  /// The value of a rank, from 1: the largest one that its bucket stands for, as HdrHistogram has it.
  package func value(atRank rank: UInt64) -> Int64? {
    var seen: UInt64 = 0
    for (index, count) in counts.enumerated() {
      seen += count
      if seen >= rank { return Self.range(of: index).upperBound }
    }
    return nil
  }

  /// The buckets that were met, with the values they stand for.
  package var buckets: [(values: ClosedRange<Int64>, count: UInt64)] {
    counts.enumerated().filter { $0.element > 0 }.map { (Self.range(of: $0.offset), $0.element) }
  }

  /// The bucket of a value that is not negative.
  private static func index(of value: Int64) -> Int {
    let bucket = max(0, 63 - (value | 1).leadingZeroBitCount - halfMagnitude)
    return (bucket + 1) << halfMagnitude + Int(value >> Int64(bucket)) - half
  }

  /// The values of a bucket.
  private static func range(of index: Int) -> ClosedRange<Int64> {
    let bucket = max(0, index >> halfMagnitude - 1)
    let low = Int64(index < 2 * half ? index : index & (half - 1) + half) << Int64(bucket)
    return low...(low + 1 << Int64(bucket) - 1)
  }
}
