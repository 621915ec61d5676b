import NetOptTestSupport
package import NetOptCore

/// Numbers at which arithmetic may fail: the limits of the types, the neighbours of zero, and numbers just
/// beyond the usual ranges. Tests put them in the place of every number that netopt takes from outside.
package enum ExtremeNumbers {
  /// Integers for settings.
  package static let integers: [Int] = [
    .min, .min + 1, -1, 0, 1, 2, 1 << 31, 1 << 32, 1 << 53, .max - 1, .max,
  ]

  /// Durations. A `Duration` holds 2^127 attoseconds, far more seconds than an `Int64`.
  package static let durations: [Duration] = [
    Duration(attoseconds: .min), .seconds(Int64.min), .nanoseconds(Int64.min), .seconds(-1), .nanoseconds(-1),
    .zero,
    .nanoseconds(1), .seconds(Int32.max), .nanoseconds(Int64.max), .seconds(Int64.max),
    Duration(attoseconds: .max),
  ]

  /// Moments of the monotonic clock.
  package static let moments: [MonotonicInstant] = [.min, .min + 1, -1, 0, 1, 1 << 53, .max - 1, .max].map {
    MonotonicInstant(nanoseconds: $0)
  }

  /// Numbers as text, for files, fields and command lines.
  package static let numerals = [
    "-9223372036854775809", "-9223372036854775808", "-2147483649", "-1", "-0", "0", "1", "2147483648",
    "4294967296",
    "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e-400",
    "5e-324",
    "0.000001", "1e18", "1e19", "1e308", "1e400", "-1e308", "1" + String(repeating: "0", count: 400),
  ]
}

extension SplitMix64 {
  /// Draws one of the values, each with the same probability.
  package mutating func element<Element>(of values: [Element]) -> Element {
    values[Int(below(UInt64(values.count)))]
  }

  /// Draws a Boolean: true with the probability 1 / `rarity`.
  package mutating func isOne(in rarity: UInt64) -> Bool { below(rarity) == 0 }
}
