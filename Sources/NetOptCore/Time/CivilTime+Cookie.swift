extension CivilTime {
  /// Parses the date of a cookie (RFC 6265, section 5.1.1). Servers write these dates in many forms, so the
  /// algorithm looks for a time, a day, a month and a year in any surroundings. It ignores the day of the
  /// week and the time zone. Years of two digits are 1970 to 2069.
  ///
  /// curl_getdate(3) does not fit: it takes the year 70, which servers write to delete a cookie, for 2070.
  package init?(cookie text: some StringProtocol) {
    var time: [Int]?
    var (day, month, year): (Int?, Int?, Int?)
    for token in text.utf8.split(whereSeparator: Self.isCookieDelimiter) {
      if time == nil, let found = Self.cookieTime(token) {
        time = found
      } else if day == nil, let found = Self.leadingNumber(token, 1...2) {
        day = found
      } else if month == nil, let found = Self.month(token.prefix(3).map(ByteClass.lowered)) {
        month = found
      } else if year == nil, let found = Self.leadingNumber(token, 2...4) {
        year = found < 70 ? found + 2000 : found < 100 ? found + 1900 : found
      }
    }
    guard let time, let day, let month, let year, year >= 1601, time[2] < 60 else { return nil }
    self.init([year, month, day] + time)
  }

  private static func isCookieDelimiter(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x09, 0x20...0x2f, 0x3b...0x40, 0x5b...0x60, 0x7b...0x7e: true
    default: false
    }
  }

  /// Returns the number at the beginning of a token.
  ///
  /// - Parameter lengths: the permitted numbers of digits.
  /// - Returns: `nil` if the token begins with fewer or more digits.
  private static func leadingNumber(_ token: some Collection<UInt8>, _ lengths: ClosedRange<Int>) -> Int? {
    let digits = token.prefix(while: ByteClass.isDigit)
    return lengths ~= digits.count ? number(digits) : nil
  }

  /// Returns hour, minute and second of a token such as `8:49:37`.
  private static func cookieTime(_ token: some Collection<UInt8>) -> [Int]? {
    let parts = token.split(separator: 0x3a, maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[..<2].allSatisfy({ $0.allSatisfy(ByteClass.isDigit) }) else { return nil }
    let numbers = parts.compactMap { leadingNumber($0, 1...2) }
    return numbers.count == 3 ? numbers : nil
  }
}
