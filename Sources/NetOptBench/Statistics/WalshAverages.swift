/// The Walsh averages: the means of each value with every other value and with itself, in ascending order. n
/// values have n(n+1)/2 averages, which are never stored. They are the entries of a matrix that rises along
/// its rows and columns.
struct WalshAverages {
  private let sorted: [Double]

  /// Makes the averages of finite values in ascending order.
  init(_ sorted: [Double]) { self.sorted = sorted }

  /// The number of averages.
  var count: Int { sorted.count * (sorted.count + 1) / 2 }

  /// The average at a rank, from 1. The search bisects over the values that a `Double` can have, in at most
  /// 64 steps. Each step counts the averages at or below a value, in one walk along the edge of the matrix.
  func smallest(_ rank: Int) -> Double {
    var low = Self.key(sorted[0] + sorted[0])
    var high = Self.key(sorted[sorted.count - 1] + sorted[sorted.count - 1])
    while low < high {
      let middle = low + Int64(bitPattern: UInt64(bitPattern: high &- low) / 2)
      if sums(upTo: Self.value(middle)) >= rank { high = middle } else { low = middle + 1 }
    }
    return Self.value(low) / 2
  }

  /// The number of sums of two values, the first not after the second, that are at most `limit`.
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

  /// Maps a value to an integer with the same order. The bit patterns of negative values are in descending
  /// order (IEEE 754), so the function reverses them.
  private static func key(_ value: Double) -> Int64 {
    let bits = Int64(bitPattern: (value + 0).bitPattern)
    return bits < 0 ? Int64.min - bits : bits
  }

  private static func value(_ key: Int64) -> Double {
    Double(bitPattern: UInt64(bitPattern: key < 0 ? Int64.min - key : key))
  }
}
