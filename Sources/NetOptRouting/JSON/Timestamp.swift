import FoundationEssentials

extension Date {
  /// Reads an RFC 3339 `date-time` such as `2026-11-20T00:00:00Z`: with seconds, and with `Z` or an offset; "T" and
  /// "Z" may be in lower case. `nil` for anything else, a day that its month does not have included. Fractions of a
  /// second are kept to the nanosecond. A leap second counts as the second after it, as in POSIX time.
  init?(rfc3339 text: String) {
    var reader = TimestampReader(text)
    guard let seconds = reader.read() else { return nil }
    self.init(timeIntervalSince1970: seconds)
  }
}

/// Reads the parts of a timestamp from left to right.
private struct TimestampReader {
  private var rest: Substring.UTF8View

  init(_ text: String) { rest = text[...].utf8 }

  /// Seconds since 1970, or `nil` when the text is no timestamp.
  mutating func read() -> Double? {
    guard let year = number(4), skip("-"), let month = number(2), skip("-"), let day = number(2), skip("Tt"),
      let hour = number(2), skip(":"), let minute = number(2), skip(":"), let second = number(2),
      let fraction = fraction(), let offset = offset(), rest.isEmpty,
      (1...12).contains(month), day >= 1, day <= Self.days(in: month, of: year),
      hour < 24, minute < 60, second <= 60
    else { return nil }
    let whole = Self.days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
    return Double(whole) + fraction
  }

  private mutating func number(_ digits: Int) -> Int? {
    let text = rest.prefix(digits)
    guard text.count == digits, text.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    rest = rest.dropFirst(digits)
    return text.reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }

  private mutating func skip(_ choices: StaticString) -> Bool {
    guard let byte = rest.first, choices.description.utf8.contains(byte) else { return false }
    rest = rest.dropFirst()
    return true
  }

  private mutating func fraction() -> Double? {
    guard skip(".") else { return 0 }
    let digits = rest.prefix { (0x30...0x39).contains($0) }
    rest = rest[digits.endIndex...]
    guard !digits.isEmpty else { return nil }
    var scale = 1.0
    return digits.prefix(9).reduce(0) { sum, digit in
      scale /= 10
      return sum + Double(digit - 0x30) * scale
    }
  }

  /// The offset from UTC in seconds.
  private mutating func offset() -> Int? {
    if skip("Zz") { return 0 }
    let sign = rest.first == 0x2d ? -1 : 1
    guard skip("+-"), let hours = number(2), skip(":"), let minutes = number(2), hours < 24, minutes < 60
    else { return nil }
    return sign * (hours * 3600 + minutes * 60)
  }

  private static func days(in month: Int, of year: Int) -> Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Days since 1 January 1970 in the Gregorian calendar. Years begin in March here, so that the leap day is the last
  /// of its year; the year 0 of that calendar begins 719,468 days before 1970.
  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let year = month > 2 ? year : year - 1
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    // Division truncates; the year -1 holds January and February of the year 0, which has a leap day.
    let leapDays = year < 0 ? -1 : year / 4 - year / 100 + year / 400
    return year * 365 + leapDays + dayOfYear - 719_468
  }
}
