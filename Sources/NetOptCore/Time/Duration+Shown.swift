extension Duration {
  /// The duration as text for a message, rounded to three significant digits: `0.4 ms`, `12 ms`, `1.25 s`,
  /// `90 s`. From 100 s on it has all digits of the whole seconds. Below 0.1 ms it is rounded to whole
  /// microseconds, and is at least `0.001 ms`. A duration that is zero or negative is `0 s`.
  package var shown: String {
    let nanoseconds = max(nanoseconds, 0)
    if nanoseconds == 0 { return "0 s" }
    // From 999.5 ms on, three digits of milliseconds would round to 1 s.
    if nanoseconds < 999_500_000 { return Self.digits(max(nanoseconds.divided(by: 1000), 1)) + " ms" }
    return Self.digits(nanoseconds.divided(by: 1_000_000)) + " s"
  }

  /// Returns a number of thousandths as decimal text: `1.25` for 1250. The number is rounded to three
  /// significant digits, or to a whole number from 100 on, and has no zeros at the end of a fraction.
  private static func digits(_ thousandths: Int64) -> String {
    // The number is rounded to a multiple of this many thousandths.
    let unit: Int64 =
      thousandths >= 100_000 ? 1000 : thousandths >= 10_000 ? 100 : thousandths >= 1000 ? 10 : 1
    let rounded = thousandths.divided(by: unit) * unit
    let fraction = rounded % 1000
    if fraction == 0 { return "\(rounded / 1000)" }
    var digits = String(String(1000 + fraction).dropFirst())
    while digits.last == "0" { digits.removeLast() }
    return "\(rounded / 1000).\(digits)"
  }
}

extension Int64 {
  /// Returns the quotient, rounded to the nearest integer. The dividend must not be negative.
  fileprivate func divided(by divisor: Int64) -> Int64 {
    self / divisor + (2 * (self % divisor) >= divisor ? 1 : 0)
  }
}
