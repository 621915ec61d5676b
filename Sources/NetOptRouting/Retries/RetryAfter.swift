package import FoundationEssentials
package import NetOptCore

/// The wait that a server asks for in `Retry-After` (RFC 9110, section 10.2.3).
package enum RetryAfter {
  /// Reads the wait from the head of a response. The field has a number of seconds, or the date at which the
  /// wait ends. In the second case, the wait begins at the date in the `Date` field, which comes from the
  /// server's own clock, or at `wall` when the head has no valid `Date`.
  ///
  /// - Parameter wall: the present moment as a calendar date. Evaluated only when the field is not a number
  ///   of seconds.
  /// - Returns: the wait, at least zero; `nil` when the field is missing or invalid.
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

  /// Parses a number of seconds (delay-seconds in RFC 9110); `nil` for any other text, such as a date. A
  /// number that does not fit into 32 bits counts as the largest one that does, which is 136 years.
  static func seconds(_ text: String) -> Duration? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return .seconds(UInt32(text) ?? .max)
  }
}
