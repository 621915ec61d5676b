import NetOptCore

/// The 95th percentile of an origin's times to the first byte: the time by which 95 % of its responses have
/// begun.
///
/// A histogram. It counts times in classes, eight for each doubling from 16 µs on. So the value is too high
/// by at most 12.5 %. After 1000 samples it halves all counts, so that it forgets old samples gradually.
package struct LatencyQuantile: Sendable {
  /// The minimum number of samples for a value. With fewer, the 95th percentile would be one of the two
  /// slowest samples.
  package static let leastSamples = 40
  /// The number of samples after which the counts are halved.
  static let mostSamples = 1000

  /// The binary logarithm of the lower end of the first class in nanoseconds: 2^14 ns, about 16 µs. The first
  /// class also counts all shorter times.
  private static let firstClassBit = 14
  /// The number of doublings that the classes cover: up to 2^38 ns, about 275 s. The last class also counts
  /// all longer times.
  private static let doublings = 24
  /// The number of classes.
  private static let classes = 8 * doublings

  /// The number of samples in each class.
  private var counts = [UInt16](repeating: 0, count: Self.classes)
  /// The sum of `counts`.
  private var total = 0

  /// Makes a quantile without samples.
  package init() {}

  /// Adds the time to the first byte of a response.
  package mutating func add(_ time: Duration) {
    if total >= Self.mostSamples { halve() }
    counts[Self.index(of: time.nanoseconds)] += 1
    total += 1
  }

  /// The time by which 95 % of the responses had begun; `nil` with fewer than `leastSamples` samples.
  package var value: Duration? {
    guard total >= Self.leastSamples else { return nil }
    // The number of samples that may be slower than the value: 5 %.
    var slower = total / 20
    for index in counts.indices.reversed() {
      let count = Int(counts[index])
      if count > slower { return .nanoseconds(Self.end(of: index)) }
      slower -= count
    }
    return nil
  }

  /// Halves all counts, so that older samples count less than new ones.
  private mutating func halve() {
    total = 0
    for index in counts.indices {
      counts[index] /= 2
      total += Int(counts[index])
    }
  }

  /// The index of the class of a time. The position of the time's highest bit and the next three bits
  /// determine the class.
  private static func index(of nanoseconds: Int64) -> Int {
    let time = UInt64(max(nanoseconds, 0))
    let highest = 63 - time.leadingZeroBitCount
    guard time > 0, highest >= firstClassBit else { return 0 }
    return min((highest - firstClassBit) * 8 + Int(time >> (highest - 3)) & 7, classes - 1)
  }

  /// The upper end of a class in nanoseconds. All times of the class are shorter.
  private static func end(of index: Int) -> Int64 {
    Int64(9 + index % 8) << Int64(index / 8 + firstClassBit - 3)
  }
}
