import NetOptCore

extension SplitMix64 {
  /// Makes a generator for one purpose in a storm.
  ///
  /// - Parameters:
  ///   - seed: the seed of the storm.
  ///   - stream: the number of the purpose. Different purposes get independent random numbers.
  ///   - index: the number of the item for which the numbers are drawn, such as the index of a request.
  init(seed: UInt64, stream: UInt64, index: Int) {
    var start = SplitMix64(seed: seed &+ stream &* 0x2545_f491_4f6c_dd1d)
    self.init(seed: start.next() ^ (UInt64(truncatingIfNeeded: index) &* 0x9e6c_63d0_876a_3f6b))
  }

  /// Returns true with a probability of `percent` percent.
  mutating func chance(_ percent: UInt64) -> Bool { below(100) < percent }

  /// A number drawn uniformly from the range.
  mutating func number(in range: ClosedRange<Int>) -> Int {
    range.lowerBound + Int(below(UInt64(range.count)))
  }

  /// An element drawn uniformly from the array.
  mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int(below(UInt64(elements.count)))]
  }

  /// Draws the size of a body in bytes: often zero or small, sometimes up to `most`.
  mutating func size(upTo most: Int) -> Int {
    switch below(100) {
    case ..<15: 0
    case ..<55: number(in: 1...1500)
    case ..<85: number(in: 1500...40_000)
    default: number(in: 40_000...most)
    }
  }
}
