extension CivilTime {
  /// Parses exactly the form that the property `rfc3339` has, `2026-11-20T00:00:00Z`. Returns `nil` for any
  /// other text.
  package init?(rfc3339 text: some StringProtocol) {
    var reader = RFC3339Reader(text)
    guard let moment = reader.read(), moment.time.rfc3339.utf8.elementsEqual(text.utf8) else { return nil }
    self = moment.time
  }

  /// Parses an RFC 3339 `date-time` such as `2026-11-20T00:00:00Z`. The text must have seconds and `Z` or an
  /// offset; "T" and "Z" may be in lower case. Of a fraction of a second, only the first nine digits
  /// count. A leap second counts as the second after it, as in POSIX time.
  ///
  /// - Returns: seconds since 1970-01-01 UTC; `nil` for any other text, including a day that its month does
  ///   not have.
  package static func seconds(rfc3339 text: some StringProtocol) -> Double? {
    var reader = RFC3339Reader(text)
    return reader.read().map { Double($0.time.seconds - Int64($0.offset)) + $0.fraction }
  }

  /// The time as an RFC 3339 `date-time`: `2026-11-20T00:00:00Z`.
  package var rfc3339: String {
    Self.padded(year, 4) + "-" + Self.padded(month) + "-" + Self.padded(day) + "T" + Self.padded(hour) + ":"
      + Self.padded(minute) + ":" + Self.padded(second) + "Z"
  }
}

/// Parses the parts of a timestamp from left to right.
private struct RFC3339Reader {
  /// The part of the text that has not been parsed.
  private var rest: ArraySlice<UInt8>

  init(_ text: some StringProtocol) { rest = Array(text.utf8)[...] }

  /// Returns the time as written, the fraction of its second, and the offset from UTC in seconds; `nil` if
  /// the text is not a timestamp.
  mutating func read() -> (time: CivilTime, fraction: Double, offset: Int)? {
    guard let year = number(4), skip("-"), let month = number(2), skip("-"), let day = number(2), skip("Tt"),
      let hour = number(2), skip(":"), let minute = number(2), skip(":"), let second = number(2),
      let fraction = fraction(), let offset = offset(), rest.isEmpty,
      let time = CivilTime([year, month, day, hour, minute, second])
    else { return nil }
    return (time, fraction, offset)
  }

  /// Parses a number with exactly this many digits.
  private mutating func number(_ digits: Int) -> Int? {
    let text = rest.prefix(digits)
    guard text.count == digits, text.allSatisfy(ByteClass.isDigit) else { return nil }
    rest = rest.dropFirst(digits)
    return text.reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }

  /// Skips the next byte if it is one of the choices.
  ///
  /// - Returns: whether a byte was skipped.
  private mutating func skip(_ choices: StaticString) -> Bool {
    guard let byte = rest.first, choices.withUTF8Buffer({ $0.contains(byte) }) else { return false }
    rest = rest.dropFirst()
    return true
  }

  /// Parses an optional "." with digits. Returns the fraction of a second; 0 if the text has no ".", and
  /// `nil` if no digit follows the ".".
  private mutating func fraction() -> Double? {
    guard skip(".") else { return 0 }
    let digits = rest.prefix(while: ByteClass.isDigit)
    rest = rest[digits.endIndex...]
    guard !digits.isEmpty else { return nil }
    var scale = 1.0
    return digits.prefix(9).reduce(0) { sum, digit in
      scale /= 10
      return sum + Double(digit - 0x30) * scale
    }
  }

  /// Parses `Z`, or the offset from UTC such as `+01:00`. Returns the offset in seconds, positive east of
  /// Greenwich; `nil` for any other text.
  private mutating func offset() -> Int? {
    if skip("Zz") { return 0 }
    let sign = rest.first == UInt8(ascii: "-") ? -1 : 1
    guard skip("+-"), let hours = number(2), skip(":"), let minutes = number(2), hours < 24, minutes < 60
    else { return nil }
    return sign * (hours * 3600 + minutes * 60)
  }
}
