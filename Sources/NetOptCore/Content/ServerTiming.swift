/// A metric of a server about a response, from the field `Server-Timing` (https://www.w3.org/TR/server-timing/).
package struct ServerTiming: Hashable, Sendable {
  /// The name of the metric, a token. A name of more than `longestName` characters is cut there and ends in
  /// "…".
  package var name: String
  /// The time that the metric gives for a part of the server's work. `nil` when the server gives no duration,
  /// or one that does not begin with a number of milliseconds from 0 to `longestDuration`. The specification
  /// allows negative numbers. They are dropped deliberately, because no work takes a negative time.
  package var duration: Duration?
  /// The description, at most `longestText` characters and "…". Characters that control a terminal are
  /// replaced by U+FFFD. `nil` when the server gives none, or an empty one.
  package var text: String?

  /// The maximum number of metrics that are read.
  package static let most = 64
  /// The maximum length of a name.
  package static let longestName = 64
  /// The maximum length of a description.
  package static let longestText = 200
  /// The longest duration that is read, in milliseconds: about 32 years.
  package static let longestDuration = 1e12

  /// Creates a metric.
  package init(_ name: String, _ duration: Duration? = nil, text: String? = nil) {
    self.name = name
    self.duration = duration
    self.text = text
  }

  /// Reads the metrics of all `Server-Timing` fields, in their order, at most `most`. Skips members that do
  /// not begin with a token. Trailers are not read.
  ///
  /// The reader is as tolerant as the specification demands. It ignores unknown parameters and text after a
  /// name or a value. The first of several parameters with one name counts, even if it has no value.
  package static func metrics(_ fields: HeaderFields) -> [ServerTiming] {
    var metrics: [ServerTiming] = []
    for line in fields.values(of: "Server-Timing") {
      var reader = ServerTimingReader(line)
      while metrics.count < most, reader.hasMore {
        if let metric = reader.next() { metrics.append(metric) }
      }
    }
    return metrics
  }
}

/// Reads the metrics of one `Server-Timing` field. Works on bytes: all delimiters are ASCII.
private struct ServerTimingReader {
  private var rest: ArraySlice<UInt8>

  init(_ line: String) { rest = Array(line.utf8)[...] }

  /// Whether a member may follow.
  var hasMore: Bool { !rest.isEmpty }

  /// Reads up to the end of the next member. Returns `nil` when the member has no name.
  mutating func next() -> ServerTiming? {
    defer {
      // The comma after the member.
      skip { $0 != UInt8(ascii: ",") }
      rest = rest.dropFirst()
    }
    skip(ByteClass.isSpaceOrTab)
    let name = token()
    skip(Self.isInside)
    var metric = ServerTiming(name.printable(ServerTiming.longestName))
    var (hasDuration, hasText) = (false, false)
    while rest.first == UInt8(ascii: ";") {
      rest = rest.dropFirst()
      guard let (parameter, value) = parameter() else { continue }
      switch parameter {
      case "dur" where !hasDuration:
        hasDuration = true
        metric.duration = value.flatMap(Self.duration)
      case "desc" where !hasText:
        hasText = true
        metric.text = value.flatMap { $0.isEmpty ? nil : $0.printable(ServerTiming.longestText) }
      default: break
      }
    }
    return name.isEmpty ? nil : metric
  }

  /// Reads a parameter and the text after it. The name is in lowercase; the value is `nil` without "=".
  /// Returns `nil` when there is no name.
  private mutating func parameter() -> (name: String, value: String?)? {
    skip(ByteClass.isSpaceOrTab)
    let name = token().loweredASCII
    skip { Self.isInside($0) && $0 != UInt8(ascii: "=") }
    var value: String?
    if rest.first == UInt8(ascii: "=") {
      rest = rest.dropFirst()
      skip(ByteClass.isSpaceOrTab)
      value = rest.first == UInt8(ascii: "\"") ? quoted() : unquoted()
    }
    skip(Self.isInside)
    return name.isEmpty ? nil : (name, value)
  }

  /// Reads a quoted string. Without a closing quote, it ends with the field.
  private mutating func quoted() -> String {
    rest = rest.dropFirst()
    var value: [UInt8] = []
    while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
      if byte == UInt8(ascii: "\\") {
        // A backslash escapes the next byte. At the end of the field it stands for itself.
        value.append(rest.popFirst() ?? byte)
      } else {
        value.append(byte)
      }
    }
    return String(decoding: value, as: UTF8.self)
  }

  /// Reads a value without quotes, up to the next delimiter.
  private mutating func unquoted() -> String {
    let value = rest.prefix(while: Self.isInside)
    rest = rest[value.endIndex...]
    return String(decoding: ByteClass.trimmed(value), as: UTF8.self)
  }

  /// Reads the bytes of a token; empty when the next byte is none of a token.
  private mutating func token() -> String {
    let token = rest.prefix { HeaderFields.isToken($0) }
    rest = rest[token.endIndex...]
    return String(decoding: token, as: UTF8.self)
  }

  private mutating func skip(_ condition: (UInt8) -> Bool) { rest = rest.drop(while: condition) }

  /// Whether the byte neither ends a member nor begins a parameter.
  private static func isInside(_ byte: UInt8) -> Bool {
    byte != UInt8(ascii: ",") && byte != UInt8(ascii: ";")
  }

  /// Converts milliseconds, as a decimal number; `nil` for text that does not begin with a number, and for
  /// numbers out of range.
  private static func duration(_ text: String) -> Duration? {
    guard let number = number(atStartOf: text), (0...ServerTiming.longestDuration).contains(number) else {
      return nil
    }
    return .microseconds(Int64((number * 1000).rounded()))
  }

  /// The number at the beginning of a text, by HTML's rules for parsing floating-point number values, which
  /// the specification refers to. They ignore the text after the longest beginning that is a number.
  private static func number(atStartOf text: String) -> Double? {
    var rest = Array(text.utf8)[...]
    /// Takes the next byte if it is one of the bytes of `choices`.
    func take(_ choices: String) -> String? {
      guard let byte = rest.first, choices.utf8.contains(byte) else { return nil }
      rest = rest.dropFirst()
      return String(UnicodeScalar(byte))
    }
    /// Takes the next digits, which may be none.
    func digits() -> String {
      let digits = rest.prefix(while: ByteClass.isDigit)
      rest = rest[digits.endIndex...]
      return String(decoding: digits, as: UTF8.self)
    }
    while take(" \t\n\r\u{c}") != nil {}
    let sign = take("+-") ?? ""
    let whole = digits()
    let fraction = take(".") == nil ? "" : digits()
    if whole.isEmpty, fraction.isEmpty { return nil }
    var number = sign + (whole.isEmpty ? "0" : whole) + (fraction.isEmpty ? "" : "." + fraction)
    // ".e5" is no number, and in "5.e3" the digits after the point may be missing.
    if take("eE") != nil {
      let sign = take("+-") ?? ""
      let exponent = digits()
      if !exponent.isEmpty { number += "e" + sign + exponent }
    }
    return Double(number)
  }
}
