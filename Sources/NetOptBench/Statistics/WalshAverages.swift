/// The Walsh averages of n values: the means of all pairs of values, each value paired with itself included.
/// There are n(n+1)/2 of them, too many to store. They form a matrix in which each row and each column is in
/// ascending order.
struct WalshAverages {
  /// The values in ascending order.
  private let sorted: [Double]

  /// Makes the averages of values, which must be finite and in ascending order.
  init(_ sorted: [Double]) { self.sorted = sorted }

  /// The number of averages.
  var count: Int { sorted.count * (sorted.count + 1) / 2 }

  /// The average at a rank in ascending order, from 1. The search is a bisection over all values of the type
  /// `Double`, which takes at most 64 steps. Each step walks once along the edge of the matrix and counts the
  /// averages that are not above a value. There must be at least one value.
  func smallest(_ rank: Int) -> Double {
    var low = Self.key(sorted[0] + sorted[0])
    var high = Self.key(sorted[sorted.count - 1] + sorted[sorted.count - 1])
    while low < high {
      let middle = low + Int64(bitPattern: UInt64(bitPattern: high &- low) / 2)
      if sums(upTo: Self.value(middle)) >= rank { high = middle } else { low = middle + 1 }
    }
    return Self.value(low) / 2
  }

  /// The number of pairs of values whose sum is at most `limit`, each value paired with itself included.
  private func sums(upTo limit: Double) -> Int {
    var found = 0
    var last = sorted.count - 1
    for first in sorted.indices {
      while last >= first, sorted[first] + sorted[last] > limit { last -= 1 }
      if last < first { break }
      found += last - first + 1
    }
    return found
  }

  /// Maps a value to an integer, so that integers have the order of their values. For negative values the
  /// order of the bit patterns is reversed (IEEE 754), so the function reverses it again.
  private static func key(_ value: Double) -> Int64 {
    let bits = Int64(bitPattern: (value + 0).bitPattern)
    return bits < 0 ? Int64.min - bits : bits
  }

  /// The value of a `key`.
  private static func value(_ key: Int64) -> Double {
    Double(bitPattern: UInt64(bitPattern: key < 0 ? Int64.min - key : key))
  }
}
