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
  static let mostCounters = index(of: highest) + 1

  /// How often each bucket was met, from the first one that was to the last: times lie near each other.
  private var counts: [UInt64] = []
  /// The bucket of the first counter.
  private var first = 0
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
    for (index, count) in other.counted { add(count, at: index) }
  }

  /// Adds to a counter; sums that no counter can hold stay at the largest.
  mutating func add(_ count: UInt64, at index: Int) {
    let count = min(count, UInt64(Int64.max) - total)
    guard count > 0 else { return }
    if counts.isEmpty { first = index }
    if index < first {
      counts.insert(contentsOf: repeatElement(0, count: first - index), at: 0)
      first = index
    }
    let place = index - first
    if place >= counts.count { counts += repeatElement(0, count: place + 1 - counts.count) }
    counts[place] += count
    total += count
  }

  /// The value of a rank, from 1: the largest one that its bucket stands for, as HdrHistogram has it.
  package func value(atRank rank: UInt64) -> Int64? {
    var seen: UInt64 = 0
    for (index, count) in counted {
      seen += count
      if seen >= rank { return Self.range(of: index).upperBound }
    }
    return nil
  }

  /// The buckets that were met, with the values they stand for.
  package var buckets: [(values: ClosedRange<Int64>, count: UInt64)] {
    counted.map { (Self.range(of: $0.index), $0.count) }
  }

  /// How many counters are kept.
  var counters: Int { counts.count }

  /// The buckets that were met, by their numbers.
  var counted: some Sequence<(index: Int, count: UInt64)> {
    counts.indices.lazy.filter { counts[$0] > 0 }.map { (first + $0, counts[$0]) }
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
