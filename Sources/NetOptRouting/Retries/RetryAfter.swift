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
    let wall = wall().timeIntervalSince1970
    func read(_ text: String) -> Double? {
      CivilTime(http: text, near: Int64(exactly: wall.rounded(.down)) ?? 0).map { Double($0.seconds) }
    }
    guard let date = read(text) else { return nil }
    let now = head.first("Date").flatMap(read) ?? wall
    return .seconds(min(max(date - now, 0), Double(UInt32.max)))
  }

  /// Reads a number of seconds, delay-seconds in RFC 9110; `nil` for anything else, a date among it. More digits than a
  /// number has room for are a long time as well: 136 years.
  static func seconds(_ text: String) -> Duration? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return .seconds(UInt32(text) ?? .max)
  }
}
