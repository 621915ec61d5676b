import NetOptCore

extension SplitMix64 {
  /// Returns `true` with this probability in percent.
  mutating func chance(_ percent: UInt64) -> Bool { below(100) < percent }

  /// Returns a number of the range. All numbers are equally likely.
  mutating func number(in range: ClosedRange<Int>) -> Int {
    range.lowerBound + Int(below(UInt64(range.count)))
  }

  /// Returns a duration of whole milliseconds from the range.
  mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration { .milliseconds(number(in: range)) }
}
