/// A time as year, month, day, hour, minute and second in UTC (proleptic Gregorian calendar).
package struct CivilTime: Hashable, Sendable {
  package var year: Int
  /// 1 to 12.
  package var month: Int
  /// The day of the month, 1 to 31.
  package var day: Int
  package var hour: Int
  package var minute: Int
  /// 0 to 60. 60 is a leap second, which a parsed text may have.
  package var second: Int

  /// Creates the time that is `seconds` after 1970-01-01 00:00:00 UTC.
  package init(seconds: Int64) {
    let days = Int(seconds.floorDivided(by: 86_400))
    // Wrapping arithmetic: near `Int64.min` the product overflows, but the difference fits.
    let rest = Int(seconds) &- days &* 86_400
    (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60)
    // In this algorithm years begin in March, so that the leap day is the last day of its year. There are
    // 719,468 days from 1 March of the year 0 to 1 January 1970.
    let shifted = days + 719_468
    let era = shifted.floorDivided(by: 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  /// Creates a time from six numbers: year, month, day, hour, minute and second. Returns `nil` if one of them
  /// is out of range, or the month does not have the day.
  init?(_ parts: [Int]) {
    (year, month, day, hour, minute, second) = (parts[0], parts[1], parts[2], parts[3], parts[4], parts[5])
    let isTime = (0...23).contains(hour) && (0...59).contains(minute) && (0...60).contains(second)
    guard isTime, (1...12).contains(month), (1...31).contains(day) else { return nil }
    // Converting a day that its month does not have to seconds and back gives another day.
    let back = CivilTime(seconds: seconds - Int64(hour * 3600 + minute * 60 + second))
    guard back.day == day, back.month == month else { return nil }
  }

  /// The time in seconds since 1970-01-01 00:00:00 UTC.
  package var seconds: Int64 {
    let shifted = month > 2 ? year : year - 1
    let era = shifted.floorDivided(by: 400)
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    let days = era * 146_097 + dayOfEra - 719_468
    // Wrapping arithmetic, as in `init(seconds:)`.
    return Int64(days &* 86_400 &+ (hour * 3600 + minute * 60 + second))
  }

  // MARK: AWS's form

  /// The time in the form of AWS signatures, the basic format of ISO 8601: `20150830T123600Z`.
  package var basic: String {
    Self.padded(year, 4) + Self.padded(month) + Self.padded(day) + "T" + Self.padded(hour)
      + Self.padded(minute)
      + Self.padded(second) + "Z"
  }

  /// Parses `20150830T123600Z`. Returns `nil` for any other text.
  package init?(basic text: some StringProtocol) {
    let bytes = Array(text.utf8)
    guard bytes.count == 16, bytes[8] == 0x54, bytes[15] == 0x5a else { return nil }
    var parts: [Int] = []
    for (start, count) in [(0, 4), (4, 2), (6, 2), (9, 2), (11, 2), (13, 2)] {
      guard let number = Self.number(bytes[start..<(start + count)]) else { return nil }
      parts.append(number)
    }
    self.init(parts)
  }

  // MARK: The forms of HTTP

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Parses an HTTP-date (RFC 9110, section 5.6.7) in any of its three forms: `Sun, 06 Nov 1994 08:49:37
  /// GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`. Returns `nil` for any other text.
  /// Ignores case, because some servers do not write the prescribed case. Ignores the day of the week, except
  /// to find the century of a year with two digits.
  ///
  /// - Parameter present: the current time in seconds since 1970. A two-digit year is taken from the century
  ///   of `present`, or from the century before if it would otherwise be more than fifty years ahead.
  ///   Default: `nil`, for a year from 2000 to 2099.
  package init?(http text: some StringProtocol, near present: Int64? = nil) {
    // The longest form, `Wednesday, 06-Nov-94 08:49:37 GMT`, has 33 bytes.
    guard text.utf8.count <= 40 else { return nil }
    let bytes = text.utf8.map(ByteClass.lowered)
    guard let start = bytes.firstIndex(where: { $0 == 0x2c || $0 == 0x20 }), start >= 3 else { return nil }
    let rest = bytes[start...]
    let parts: [Int]?
    switch (bytes[start], rest.count) {
    case (0x2c, 26): parts = Self.parts(rest, ", 00 aaa 0000 00:00:00 gmt")
    case (0x2c, 24):
      parts = Self.parts(rest, ", 00-aaa-00 00:00:00 gmt").map { parts in
        [Self.year(of: parts, bytes[..<start], near: present)] + parts.dropFirst()
      }
    case (0x20, 21): parts = Self.parts(rest, " aaa 00 00:00:00 0000", monthFirst: true)
    default: parts = nil
    }
    guard let parts else { return nil }
    self.init(parts)
  }

  /// The time as an HTTP-date in the form that senders must use (IMF-fixdate):
  /// `Sun, 06 Nov 1994 08:49:37 GMT`.
  package var http: String {
    weekday + ", " + Self.padded(day) + " " + Self.months[month - 1] + " " + Self.padded(year, 4) + " "
      + Self.padded(hour) + ":" + Self.padded(minute) + ":" + Self.padded(second) + " GMT"
  }

  /// Parses the numbers and the month of a text.
  ///
  /// - Parameters:
  ///   - form: the form of the text. `0` stands for a digit and `aaa` for the month in lower case. All other
  ///     characters must be the same in the text.
  ///   - monthFirst: whether the form is that of asctime(3): the month comes before the day, the year is
  ///     last, and a space may replace the first digit of the day.
  /// - Returns: year, month, day, hour, minute and second; `nil` if the text has another form.
  private static func parts(_ text: ArraySlice<UInt8>, _ form: String, monthFirst: Bool = false) -> [Int]? {
    var numbers: [Int] = []
    var month: [UInt8] = []
    var isInNumber = false
    for (byte, wanted) in zip(text, form.utf8) {
      switch wanted {
      case 0x30:
        // Only asctime(3) pads the day with a space.
        let isPadding = monthFirst && byte == 0x20 && numbers.isEmpty
        guard ByteClass.isDigit(byte) || isPadding else { return nil }
        if !isInNumber { numbers.append(0) }
        numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + (isPadding ? 0 : Int(byte - 0x30))
        isInNumber = true
        continue
      case 0x61 where month.count < 3: month.append(byte)
      case byte: break
      default: return nil
      }
      isInNumber = false
    }
    guard let number = Self.month(month), numbers.count == 5 else { return nil }
    return monthFirst
      ? [numbers[4], number, numbers[0], numbers[1], numbers[2], numbers[3]]
      : [numbers[1], number, numbers[0], numbers[2], numbers[3], numbers[4]]
  }

  /// Returns the number of the month with a name of three letters in lower case, from 1.
  static func month(_ name: some Sequence<UInt8>) -> Int? {
    months.firstIndex { $0.loweredASCII.utf8.elementsEqual(name) }.map { $0 + 1 }
  }

  /// Returns the full year for a year with two digits. This is the year in the present century. If that year
  /// is more than fifty years ahead, it is the year in the century before (RFC 9110, section 5.6.7). The day
  /// of the week may show that the year a hundred years earlier is meant: servers write `Thu, 01-Jan-70` for
  /// a time in the past. So if only the earlier date falls on the given day of the week, returns the earlier
  /// year.
  ///
  /// - Parameters:
  ///   - parts: the year with two digits, month, day, hour, minute and second.
  ///   - weekday: the day of the week in lower case, in full or abbreviated.
  ///   - present: the current time in seconds since 1970. `nil` for a year from 2000 to 2099.
  private static func year(of parts: [Int], _ weekday: ArraySlice<UInt8>, near present: Int64?) -> Int {
    guard let present else { return 2000 + parts[0] }
    let now = CivilTime(seconds: present).year
    let sameCentury = now - now % 100 + parts[0]
    let year = sameCentury > now + 50 ? sameCentury - 100 : sameCentury
    let meant = [year, year - 100].first { year in
      CivilTime([year] + parts.dropFirst()).map { weekday.starts(with: $0.weekday.loweredASCII.utf8) }
        ?? false
    }
    return meant ?? year
  }

  /// The abbreviated day of the week: `Sun`.
  private var weekday: String {
    // 1 January 1970 was a Thursday.
    let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    return days[(Int(seconds.floorDivided(by: 86_400)) % 7 + 7) % 7]
  }

  /// Returns a number as decimal digits, with leading zeros up to the width.
  static func padded(_ number: Int, _ width: Int = 2) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(width - digits.count, 0)) + digits
  }

  /// Returns the value of decimal digits; `nil` if a byte is not a digit.
  static func number(_ digits: some Collection<UInt8>) -> Int? {
    guard digits.allSatisfy(ByteClass.isDigit) else { return nil }
    return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }
}

extension BinaryInteger {
  /// Returns the quotient, rounded down.
  fileprivate func floorDivided(by divisor: Self) -> Self {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
