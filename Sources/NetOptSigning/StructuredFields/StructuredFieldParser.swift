import NetOptCore

/// A strict parser of structured fields (RFC 9651, section 4.2). It fails wherever the algorithm in the RFC
/// fails.
package struct StructuredFieldParser {
  /// The text to parse.
  private let text: [UInt8]
  /// The offset of the next byte to read.
  private var next = 0

  private init(_ text: some Sequence<UInt8>) { self.text = Array(text) }

  /// Reads a list. If the field occurs several times, the caller joins the values with ", ".
  package static func list(_ text: some Sequence<UInt8>) throws(StructuredFieldFault) -> StructuredList {
    var parser = Self(text)
    return try parser.whole { (parser) throws(StructuredFieldFault) in try parser.list() }
  }

  /// Reads a dictionary. If the field occurs several times, the caller joins the values with ", ".
  package static func dictionary(
    _ text: some Sequence<UInt8>
  ) throws(StructuredFieldFault) -> StructuredDictionary {
    var parser = Self(text)
    return try parser.whole { (parser) throws(StructuredFieldFault) in try parser.dictionary() }
  }

  /// Reads an item.
  package static func item(_ text: some Sequence<UInt8>) throws(StructuredFieldFault) -> StructuredItem {
    var parser = Self(text)
    return try parser.whole { (parser) throws(StructuredFieldFault) in try parser.item() }
  }

  /// Reads a value that is the whole text, apart from spaces around it.
  private mutating func whole<Result>(
    _ read: (inout Self) throws(StructuredFieldFault) -> Result
  ) throws(StructuredFieldFault) -> Result {
    skipSpaces()
    let result = try read(&self)
    skipSpaces()
    guard next == text.count else { throw fault("more text follows the value") }
    return result
  }

  // MARK: Bytes

  /// The next byte to read; `nil` at the end of the text.
  private var current: UInt8? { next < text.count ? text[next] : nil }

  /// The fault of a text that breaks a rule at the current byte.
  private func fault(_ rule: String) -> StructuredFieldFault {
    StructuredFieldFault(offset: next, rule: rule)
  }

  /// Skips the next byte if it equals `byte`. Returns whether the two are equal.
  private mutating func take(_ byte: UInt8) -> Bool {
    guard current == byte else { return false }
    next += 1
    return true
  }

  private mutating func skipSpaces() { while take(0x20) {} }

  /// Skips spaces and tabs.
  private mutating func skipOptionalSpace() {
    while let byte = current, byte == 0x20 || byte == 0x09 { next += 1 }
  }

  // MARK: Lists and dictionaries

  // A function with the name of a kind of value (`list`, `member`, `key`, `token`) reads one such value that
  // begins at `next`, and moves `next` to the byte after the value.

  private mutating func list() throws(StructuredFieldFault) -> StructuredList {
    var members: StructuredList = []
    while current != nil {
      members.append(try member())
      if try !comma() { break }
    }
    return members
  }

  private mutating func dictionary() throws(StructuredFieldFault) -> StructuredDictionary {
    var dictionary = StructuredDictionary()
    while current != nil {
      let key = try key()
      if take(0x3d) {
        dictionary[key] = try member()
      } else {
        dictionary[key] = .item(StructuredItem(.boolean(true), try parameters()))
      }
      if try !comma() { break }
    }
    return dictionary
  }

  /// Skips the comma and the white space between two members.
  ///
  /// - Returns: whether another member follows.
  private mutating func comma() throws(StructuredFieldFault) -> Bool {
    let end = next
    skipOptionalSpace()
    if current == nil {
      // At the end of the text, only spaces are allowed, not tabs. So go back: `whole` skips the spaces and
      // refuses a tab.
      next = end
      return false
    }
    guard take(0x2c) else { throw fault("a comma is expected here") }
    skipOptionalSpace()
    guard current != nil else { throw fault("the text ends with a comma") }
    return true
  }

  private mutating func member() throws(StructuredFieldFault) -> StructuredMember {
    current == 0x28 ? .innerList(try innerList()) : .item(try item())
  }

  private mutating func innerList() throws(StructuredFieldFault) -> InnerList {
    next += 1
    var items: [StructuredItem] = []
    while true {
      skipSpaces()
      if take(0x29) { return InnerList(items, try parameters()) }
      guard current != nil else { throw fault("an inner list is not closed") }
      items.append(try item())
      guard current == 0x20 || current == 0x29 else {
        throw fault("a space or ) must follow an item of an inner list")
      }
    }
  }

  private mutating func item() throws(StructuredFieldFault) -> StructuredItem {
    StructuredItem(try bareItem(), try parameters())
  }

  private mutating func parameters() throws(StructuredFieldFault) -> Parameters {
    var parameters = Parameters()
    while take(0x3b) {
      skipSpaces()
      let key = try key()
      parameters[key] = take(0x3d) ? try bareItem() : .boolean(true)
    }
    return parameters
  }

  private mutating func key() throws(StructuredFieldFault) -> String {
    guard let first = current, Self.isLower(first) || first == 0x2a else {
      throw fault("a key must begin with a lower-case letter or *")
    }
    let start = next
    while let byte = current, Self.isKeyByte(byte) { next += 1 }
    return String(decoding: text[start..<next], as: UTF8.self)
  }

  /// Whether a byte is a lower-case letter.
  private static func isLower(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte) }
  /// Whether a byte is a letter.
  private static func isAlpha(_ byte: UInt8) -> Bool { isLower(byte | 0x20) }

  /// Whether a key may contain the byte after its first byte.
  static func isKeyByte(_ byte: UInt8) -> Bool {
    isLower(byte) || ByteClass.isDigit(byte) || "_-.*".utf8.contains(byte)
  }

  // MARK: Items

  private mutating func bareItem() throws(StructuredFieldFault) -> BareItem {
    switch current {
    case 0x2d, (0x30...0x39)?: return try number()
    case 0x22: return .string(try string())
    case 0x3a: return .bytes(try byteSequence())
    case 0x3f: return .boolean(try boolean())
    case 0x40: return .date(try date())
    case 0x25: return .displayString(try displayString())
    case let byte? where Self.isAlpha(byte) || byte == 0x2a: return .token(token())
    default: throw fault("this is not an item")
    }
  }

  /// Reads an integer or a decimal. For a decimal, `whole` becomes the number of thousandths.
  private mutating func number() throws(StructuredFieldFault) -> BareItem {
    let isNegative = take(0x2d)
    let start = next
    var whole: Int64 = 0
    guard let first = current, ByteClass.isDigit(first) else { throw fault("a digit is expected here") }
    while let byte = current, ByteClass.isDigit(byte) {
      guard next - start < 15 else { throw fault("a number can have at most 15 digits") }
      whole = whole * 10 + Int64(byte - 0x30)
      next += 1
    }
    guard current == 0x2e else { return .integer(isNegative ? -whole : whole) }
    guard next - start <= 12 else { throw fault("a decimal can have at most 12 digits before its point") }
    next += 1
    let point = next
    while let byte = current, ByteClass.isDigit(byte) {
      guard next - point < 3 else { throw fault("a decimal can have at most 3 digits after its point") }
      whole = whole * 10 + Int64(byte - 0x30)
      next += 1
    }
    guard next > point else { throw fault("a decimal must not end with its point") }
    for _ in (next - point)..<3 { whole *= 10 }
    return .decimal(thousandths: isNegative ? -whole : whole)
  }

  private mutating func string() throws(StructuredFieldFault) -> String {
    next += 1
    var out: [UInt8] = []
    while let byte = current {
      switch byte {
      case 0x22:
        next += 1
        return String(decoding: out, as: UTF8.self)
      case 0x5c:
        next += 1
        guard let escaped = current, escaped == 0x22 || escaped == 0x5c else {
          throw fault("only \" and \\ can be escaped")
        }
        out.append(escaped)
      case 0x20...0x7e: out.append(byte)
      default: throw fault("a string can have only visible ASCII and spaces")
      }
      next += 1
    }
    throw fault("a string is not closed")
  }

  private mutating func token() -> String {
    let start = next
    while let byte = current, Self.isTokenByte(byte) { next += 1 }
    return String(decoding: text[start..<next], as: UTF8.self)
  }

  /// Whether a token may contain the byte after its first byte.
  static func isTokenByte(_ byte: UInt8) -> Bool {
    isAlpha(byte) || ByteClass.isDigit(byte) || "!#$%&'*+-.^_`|~:/".utf8.contains(byte)
  }

  private mutating func byteSequence() throws(StructuredFieldFault) -> [UInt8] {
    next += 1
    guard let end = text[next...].firstIndex(of: 0x3a) else { throw fault("a byte sequence is not closed") }
    // Padding may be missing: RFC 9651, section 4.2.7.
    let digits = text[next..<end]
    let bare = digits.prefix { $0 != 0x3d }
    let padded = bare + repeatElement(0x3d, count: (4 - bare.count % 4) % 4)
    guard digits.count == bare.count || digits.count == padded.count, let bytes = Base64.decode(padded),
      digits[bare.endIndex...].allSatisfy({ $0 == 0x3d })
    else { throw fault("a byte sequence must be base64") }
    next = end + 1
    return bytes
  }

  private mutating func boolean() throws(StructuredFieldFault) -> Bool {
    next += 1
    if take(0x31) { return true }
    if take(0x30) { return false }
    throw fault("a boolean must be ?0 or ?1")
  }

  /// Reads a date, and returns it in seconds since 1970.
  private mutating func date() throws(StructuredFieldFault) -> Int64 {
    next += 1
    guard case .integer(let seconds) = try number() else { throw fault("a date must not have a fraction") }
    return seconds
  }

  private mutating func displayString() throws(StructuredFieldFault) -> String {
    next += 1
    guard take(0x22) else { throw fault("a display string must begin with %\"") }
    var out: [UInt8] = []
    while let byte = current {
      next += 1
      switch byte {
      case 0x22:
        guard let string = String(validating: out, as: UTF8.self) else {
          throw fault("a display string must be UTF-8")
        }
        guard !out.withUnsafeBytes({ SlowText.hasLongRun($0) }) else {
          throw fault("a display string is not usable: \(SlowText.violation)")
        }
        return string
      case 0x25:
        guard next + 2 <= text.count, let pair = Hex.bytes(text[next..<(next + 2)]) else {
          throw fault("two hexadecimal digits in lower case must follow %")
        }
        out += pair
        next += 2
      case 0x20...0x7e: out.append(byte)
      default: throw fault("a display string can have only visible ASCII and spaces")
      }
    }
    throw fault("a display string is not closed")
  }
}
