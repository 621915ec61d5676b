/// Kendall's τ-b (1945): the agreement of two rankings, from -1 to 1.
package enum KendallTau {
  /// τ-b of two rankings of the same items; 1 for the same order, -1 for the reverse order.
  ///
  /// - Parameters:
  ///   - first: the value of each item in the first ranking. Equal values are ties.
  ///   - second: the value of each item in the second ranking, in the order of the items in `first`.
  /// - Returns: `nil` when all values of a ranking are equal, or when there are fewer than two items.
  package static func b(_ first: [Double], _ second: [Double]) -> Double? {
    var (agree, firstTies, secondTies, pairs) = (0, 0, 0, 0)
    for i in first.indices {
      for j in first.indices[(i + 1)...] {
        pairs += 1
        let (a, b) = (Self.sign(first[i] - first[j]), Self.sign(second[i] - second[j]))
        if a == 0 { firstTies += 1 }
        if b == 0 { secondTies += 1 }
        agree += a * b
      }
    }
    let scale = (Double(pairs - firstTies) * Double(pairs - secondTies)).squareRoot()
    return scale > 0 ? Double(agree) / scale : nil
  }

  /// The sign of a value: 1, 0 or -1.
  private static func sign(_ value: Double) -> Int { value > 0 ? 1 : value < 0 ? -1 : 0 }
}
