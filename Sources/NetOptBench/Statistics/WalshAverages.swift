/// The means of every value with every other and with itself, in ascending order, without being written out: of n values there
/// are n(n+1)/2. They are the entries of a matrix that rises along its rows and columns.
struct WalshAverages {
  private let sorted: [Double]

  /// Makes the averages of finite values in ascending order.
  init(_ sorted: [Double]) { self.sorted = sorted }

  /// How many averages there are.
  var count: Int { sorted.count * (sorted.count + 1) / 2 }

  /// The average of a rank, from 1: by bisection over the numbers that a `Double` can have, of which at most 64 are looked
  /// at; how many averages lie at or below one of them is counted in one walk along the edge of the matrix.
  func smallest(_ rank: Int) -> Double {
    var low = Self.key(sorted[0] + sorted[0])
    var high = Self.key(sorted[sorted.count - 1] + sorted[sorted.count - 1])
    while low < high {
      let middle = low + Int64(bitPattern: UInt64(bitPattern: high &- low) / 2)
      if sums(upTo: Self.value(middle)) >= rank { high = middle } else { low = middle + 1 }
    }
    return Self.value(low) / 2
  }

  /// How many sums of two values, the first not after the second, are at most this large.
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

  /// A whole number that is in the same order as the values are: the bits of a negative one run backwards (IEEE 754).
  private static func key(_ value: Double) -> Int64 {
    let bits = Int64(bitPattern: (value + 0).bitPattern)
    return bits < 0 ? Int64.min - bits : bits
  }

  private static func value(_ key: Int64) -> Double {
    Double(bitPattern: UInt64(bitPattern: key < 0 ? Int64.min - key : key))
  }
}
