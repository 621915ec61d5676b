/// A moment as year, month, day, hour, minute and second in UTC (the proleptic Gregorian calendar).
package struct CivilTime: Hashable, Sendable {
  package var year: Int
  package var month: Int
  package var day: Int
  package var hour: Int
  package var minute: Int
  package var second: Int

  /// The moment so many seconds after the start of 1970.
  package init(seconds: Int64) {
    let days = Int(seconds.floorDivided(by: 86_400))
    let rest = Int(seconds) - days * 86_400
    (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60)
    // Years begin in March here, so that the leap day is the last of its year; 719,468 days lie between 1 March of
    // the year 0 and 1 January 1970.
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

  private init?(_ parts: [Int]) {
    (year, month, day, hour, minute, second) = (parts[0], parts[1], parts[2], parts[3], parts[4], parts[5])
    let isTime = (0...23).contains(hour) && (0...59).contains(minute) && (0...60).contains(second)
    guard isTime, (1...12).contains(month), (1...31).contains(day) else { return nil }
    // A day that its month does not have comes back as another one.
    let back = CivilTime(seconds: seconds - Int64(hour * 3600 + minute * 60 + second))
    guard back.day == day, back.month == month else { return nil }
  }

  /// Seconds since the start of 1970.
  package var seconds: Int64 {
    let shifted = month > 2 ? year : year - 1
    let era = shifted.floorDivided(by: 400)
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    let days = era * 146_097 + dayOfEra - 719_468
    return Int64(days * 86_400 + hour * 3600 + minute * 60 + second)
  }

  // MARK: AWS's form

  /// `20150830T123600Z`.
  package var basic: String {
    Self.padded(year, 4) + Self.padded(month) + Self.padded(day) + "T" + Self.padded(hour)
      + Self.padded(minute)
      + Self.padded(second) + "Z"
  }

  /// Reads `20150830T123600Z`; `nil` for anything else.
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

  // MARK: The form of HTTP

  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Reads `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7); `nil` for anything else, the obsolete forms
  /// included.
  package init?(http text: some StringProtocol) {
    let bytes = Array(text.utf8)
    guard bytes.count == 29, bytes[3...4].elementsEqual(", ".utf8), bytes[25...].elementsEqual(" GMT".utf8),
      bytes[19] == 0x3a, bytes[22] == 0x3a, [7, 11, 16].allSatisfy({ bytes[$0] == 0x20 }),
      let month = Self.months.firstIndex(where: { bytes[8..<11].elementsEqual($0.utf8) }),
      let day = Self.number(bytes[5..<7]), let year = Self.number(bytes[12..<16]),
      let hour = Self.number(bytes[17..<19]), let minute = Self.number(bytes[20..<22]),
      let second = Self.number(bytes[23..<25])
    else { return nil }
    self.init([year, month + 1, day, hour, minute, second])
  }

  // MARK: RFC 3339

  /// Reads `2026-11-20T00:00:00Z`; `nil` for anything else.
  package init?(rfc3339 text: some StringProtocol) {
    let bytes = Array(text.utf8)
    guard bytes.count == 20, bytes[4] == 0x2d, bytes[7] == 0x2d, bytes[10] == 0x54, bytes[13] == 0x3a,
      bytes[16] == 0x3a, bytes[19] == 0x5a
    else { return nil }
    self.init(basic: String(decoding: bytes.filter { $0 != 0x2d && $0 != 0x3a }, as: UTF8.self))
  }

  /// `2026-11-20T00:00:00Z`.
  package var rfc3339: String {
    Self.padded(year, 4) + "-" + Self.padded(month) + "-" + Self.padded(day) + "T" + Self.padded(hour) + ":"
      + Self.padded(minute) + ":" + Self.padded(second) + "Z"
  }

  private static func padded(_ number: Int, _ width: Int = 2) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(width - digits.count, 0)) + digits
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
    guard digits.allSatisfy(ByteClass.isDigit) else { return nil }
    return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }
}

extension BinaryInteger {
  /// The quotient, rounded down.
  fileprivate func floorDivided(by divisor: Self) -> Self {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
