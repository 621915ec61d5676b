import NetOptCore

/// When 95 % of an origin's answers have begun: the 95th percentile of times to the first byte.
///
/// Times are counted in classes, eight for each doubling from 16 µs on, so that an answer is off by at most 9 %. When a
/// thousand were counted all counts are halved: what was measured long ago is forgotten little by little.
package struct LatencyQuantile: Sendable {
  /// The least number of times from which an answer is given. With fewer, the 95th percentile is the slowest of all.
  package static let leastSamples = 40
  /// How many are counted before the counts are halved.
  static let mostSamples = 1000

  /// The first classes begin at 2^14 ns; what is shorter is in the very first.
  private static let shortest = 14
  private static let doublings = 24
  private static let classes = 8 * doublings

  private var counts = [UInt16](repeating: 0, count: Self.classes)
  private var total = 0

  /// Makes one that knows nothing.
  package init() {}

  /// Takes a time to the first byte.
  package mutating func add(_ time: Duration) {
    if total >= Self.mostSamples { halve() }
    counts[Self.index(of: time.nanoseconds)] += 1
    total += 1
  }

  /// By when 95 % of the answers had begun; `nil` as long as too few are known.
  package var value: Duration? {
    guard total >= Self.leastSamples else { return nil }
    // So many are allowed to be slower.
    var slower = total / 20
    for index in counts.indices.reversed() {
      let count = Int(counts[index])
      if count > slower { return .nanoseconds(Self.end(of: index)) }
      slower -= count
    }
    return nil
  }

  private mutating func halve() {
    total = 0
    for index in counts.indices {
      counts[index] /= 2
      total += Int(counts[index])
    }
  }

  /// The class of a time: the position of its highest bit, and the three bits behind that.
  private static func index(of nanoseconds: Int64) -> Int {
    let time = UInt64(max(nanoseconds, 0))
    let highest = 63 - time.leadingZeroBitCount
    guard time > 0, highest >= shortest else { return 0 }
    return min((highest - shortest) * 8 + Int(time >> (highest - 3)) & 7, classes - 1)
  }

  /// The longest time of a class.
  private static func end(of index: Int) -> Int64 {
    Int64(9 + index % 8) << Int64(index / 8 + shortest - 3)
  }
}
