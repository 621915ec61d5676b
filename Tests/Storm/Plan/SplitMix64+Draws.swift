import NetOptCore

extension SplitMix64 {
  /// A generator whose numbers follow from a seed and a position in the storm, such as a request's index.
  init(seed: UInt64, stream: UInt64, index: Int) {
    var start = SplitMix64(seed: seed &+ stream &* 0x2545_f491_4f6c_dd1d)
    self.init(seed: start.next() ^ (UInt64(truncatingIfNeeded: index) &* 0x9e6c_63d0_876a_3f6b))
  }

  /// True in so many cases of a hundred.
  mutating func chance(_ percent: UInt64) -> Bool { below(100) < percent }

  /// A number of the range, each as likely.
  mutating func number(in range: ClosedRange<Int>) -> Int {
    range.lowerBound + Int(below(UInt64(range.count)))
  }

  /// One of the elements, each as likely.
  mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int(below(UInt64(elements.count)))]
  }

  /// A size of a body: often none or small, sometimes as large as `most`.
  mutating func size(upTo most: Int) -> Int {
    switch below(100) {
    case ..<15: 0
    case ..<55: number(in: 1...1500)
    case ..<85: number(in: 1500...40_000)
    default: number(in: 40_000...most)
    }
  }
}
