/// Kendall's τ-b (1945): the agreement of two rankings, from -1 to 1.
package enum KendallTau {
  /// τ-b of two rankings, or `nil` when one ranking consists of equal values only.
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

  private static func sign(_ value: Double) -> Int { value > 0 ? 1 : value < 0 ? -1 : 0 }
}
