import NetOptCore

extension SplitMix64 {
  /// True in so many cases of a hundred.
  mutating func chance(_ percent: UInt64) -> Bool { below(100) < percent }

  /// A number of the range, each as likely.
  mutating func number(in range: ClosedRange<Int>) -> Int {
    range.lowerBound + Int(below(UInt64(range.count)))
  }

  /// A time of whole milliseconds.
  mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration { .milliseconds(number(in: range)) }
}
