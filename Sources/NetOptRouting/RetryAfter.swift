package import FoundationEssentials
package import NetOptCore

/// How long a server asks to be left alone: `Retry-After` (RFC 9110, section 10.2.3).
package enum RetryAfter {
  /// Reads the field of a response's head.
  ///
  /// - Parameter wall: the present moment by the calendar, asked for when the field is a date and the head has no `Date` by
  ///   the server's own clock.
  /// - Returns: `nil` without the field, and when it cannot be read.
  package static func delay(_ head: ResponseHead, wall: () -> Date) -> Duration? {
    guard let text = head.first("Retry-After") else { return nil }
    if let delay = seconds(text) { return delay }
    guard let date = Date(http: text) else { return nil }
    let now = head.first("Date").flatMap { Date(http: $0) } ?? wall()
    return .seconds(min(max(date.timeIntervalSince(now), 0), Double(UInt32.max)))
  }

  /// Reads a number of seconds, delay-seconds in RFC 9110; `nil` for anything else, a date among it. More digits than a
  /// number has room for are a long time as well: 136 years.
  static func seconds(_ text: String) -> Duration? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return .seconds(UInt32(text) ?? .max)
  }
}

extension Date {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Reads an HTTP-date (RFC 9110, section 5.6.7) in any of its three forms: `Sun, 06 Nov 1994 08:49:37 GMT`,
  /// `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`. `nil` for anything else. The day of the week is not
  /// compared with the date.
  init?(http text: String) {
    let words = text.split { $0 == " " || $0 == "-" || $0 == "," }
    let hyphens = text.count { $0 == "-" }
    guard words.count == 5 || words.count == 6 && words[5] == "GMT", hyphens == 0 || hyphens == 2 else {
      return nil
    }
    let isBare = words.count == 5
    let (day, month, year, time) =
      isBare ? (words[2], words[1], words[4], words[3]) : (words[1], words[2], words[3], words[4])
    guard let number = Self.months.firstIndex(of: String(month)).map({ $0 + 1 }), let day = Int(day),
      var years = Int(year)
    else { return nil }
    // Two digits: what a server says of now or soon lies in this century.
    if year.utf8.count == 2 { years += 2000 }
    let padded = { (number: Int, width: Int) in
      String(repeating: "0", count: max(0, width - "\(number)".utf8.count)) + "\(number)"
    }
    self.init(rfc3339: "\(padded(years, 4))-\(padded(number, 2))-\(padded(day, 2))T\(time)Z")
  }
}
