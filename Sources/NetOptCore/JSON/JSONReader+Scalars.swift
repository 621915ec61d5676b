extension JSONReader {
  /// Reads a string, a number, true, false or null.
  mutating func scalar() throws(Fault) {
    let start = position
    let kind: JSONNode.Kind
    switch bytes[position] {
    case UInt8(ascii: "\""): return try appendString()
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      try number()
      kind = .number
    case UInt8(ascii: "t"): kind = try literal("true", .true)
    case UInt8(ascii: "f"): kind = try literal("false", .false)
    case UInt8(ascii: "n"): kind = try literal("null", .null)
    default: throw fault("a value is expected here")
    }
    nodes.append(JSONNode(kind, start..<position, next: nodes.count + 1))
  }

  /// Reads `true`, `false` or `null`, and returns `kind`.
  private mutating func literal(_ text: StaticString, _ kind: JSONNode.Kind) throws(Fault) -> JSONNode.Kind {
    let count = text.utf8CodeUnitCount
    let isThere =
      position + count <= bytes.count && text.withUTF8Buffer { bytes[position...].starts(with: $0) }
    guard isThere else { throw fault("a value is expected here") }
    position += count
    return kind
  }

  // MARK: Numbers

  /// Reads a number. Checks its form, and does not convert it.
  private mutating func number() throws(Fault) {
    let start = position
    if bytes[position] == UInt8(ascii: "-") { position += 1 }
    let whole = digits()
    var isNumber = whole == 1 || whole > 1 && bytes[position - whole] != UInt8(ascii: "0")
    if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
      position += 1
      isNumber = digits() > 0 && isNumber
    }
    if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
      position += 1
      if position < bytes.count, bytes[position] == 0x2b || bytes[position] == 0x2d { position += 1 }
      isNumber = digits() > 0 && isNumber
    }
    if !isNumber { throw fault("this is not a valid JSON number", at: start) }
  }

  /// Skips decimal digits and returns how many there were.
  private mutating func digits() -> Int {
    let start = position
    while position < bytes.count, ByteClass.isDigit(bytes[position]) { position += 1 }
    return position - start
  }

  // MARK: Strings

  /// Reads a string and appends its node. Moves `position` from the opening quote to the byte after the
  /// closing quote.
  mutating func appendString() throws(Fault) {
    let start = position
    position += 1
    passASCII()
    if position < bytes.count, bytes[position] == UInt8(ascii: "\"") {
      nodes.append(JSONNode(.string, (start + 1)..<position, next: nodes.count + 1, isPlain: true))
      position += 1
      return
    }
    let hasLongRun = try skipRest(from: start)
    nodes.append(JSONNode(.string, (start + 1)..<(position - 1), next: nodes.count + 1))
    // Comparing such a string may take minutes for 1 MB (`SlowText`).
    if hasLongRun { throw fault("this string has \(SlowText.longRun)", at: start) }
  }

  /// Skips the rest of a string, up to the byte after the closing quote. Searches it for long runs
  /// (`SlowText`) if the key rule is `sameCharacters`.
  ///
  /// - Parameter start: the offset of the opening quote.
  /// - Returns: whether the search found a long run.
  private mutating func skipRest(from start: Int) throws(Fault) -> Bool {
    var hasLongRun = false
    var run = SlowText.Run()
    while position < bytes.count {
      let scalar: Unicode.Scalar
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position += 1
        return hasLongRun
      case UInt8(ascii: "\\"): scalar = try escape()
      case ..<0x20:
        throw fault("this string has a control character; write it as an escape")
      case 0x80...: scalar = try encoded()
      default:
        passASCII()
        run = SlowText.Run()
        continue
      }
      guard rule == .sameCharacters else { continue }
      if run.add(scalar) { hasLongRun = true }
    }
    throw fault("this string is not closed", at: start)
  }

  /// Skips ASCII characters other than control characters, the quote and the backslash.
  @inline(__always)
  private mutating func passASCII() {
    var next = position
    while next < bytes.count {
      let byte = bytes[next]
      guard byte >= 0x20, byte < 0x80, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") else { break }
      next += 1
    }
    position = next
  }

  /// Reads a scalar of two to four UTF-8 bytes (Unicode 16, table 3-7). Moves `position` past it.
  private mutating func encoded() throws(Fault) -> Unicode.Scalar {
    let first = bytes[position]
    let count = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
    if first >= 0xc2, position + count <= bytes.count {
      var value = UInt32(first) & (0x7f >> UInt32(count))
      var isWhole = true
      for byte in bytes[(position + 1)..<(position + count)] {
        if byte & 0xc0 != 0x80 { isWhole = false }
        value = value << 6 | UInt32(byte & 0x3f)
      }
      // Reject overlong forms, surrogates, and values above U+10FFFF (first bytes from 0xf5).
      if isWhole, count == 2 || value >= (count == 3 ? 0x800 : 0x10000), first < 0xf5,
        let scalar = Unicode.Scalar(value)
      {
        position += count
        return scalar
      }
    }
    throw fault("this string is not UTF-8")
  }

  /// Reads an escape sequence and returns its character. Moves `position` past it. A surrogate pair, such as
  /// `\ud83d\ude00`, is one escape sequence.
  private mutating func escape() throws(Fault) -> Unicode.Scalar {
    let start = position
    position += 2
    switch position <= bytes.count ? bytes[position - 1] : 0 {
    case UInt8(ascii: "\""): return "\""
    case UInt8(ascii: "\\"): return "\\"
    case UInt8(ascii: "/"): return "/"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{c}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"):
      guard let unit = hexadecimal() else { break }
      if let scalar = Unicode.Scalar(UInt32(unit)) { return scalar }
      guard UTF16.isLeadSurrogate(unit), position + 2 <= bytes.count,
        bytes[position] == UInt8(ascii: "\\"), bytes[position + 1] == UInt8(ascii: "u")
      else { break }
      position += 2
      guard let trail = hexadecimal(), UTF16.isTrailSurrogate(trail) else { break }
      let pair = 0x10000 + (UInt32(unit) - 0xd800) << 10 + (UInt32(trail) - 0xdc00)
      if let scalar = Unicode.Scalar(pair) { return scalar }
    default: break
    }
    throw fault("this escape sequence does not encode a character", at: start)
  }

  /// Reads four hexadecimal digits and moves `position` past them. Returns `nil` if there are no four digits.
  private mutating func hexadecimal() -> UInt16? {
    guard position + 4 <= bytes.count else { return nil }
    var value: UInt16 = 0
    for byte in bytes[position..<(position + 4)] {
      guard let digit = Hex.digit(byte) else { return nil }
      value = value << 4 | UInt16(digit)
    }
    position += 4
    return value
  }
}
