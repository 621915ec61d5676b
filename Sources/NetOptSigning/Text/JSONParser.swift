import NetOptCore

/// Reads JSON (RFC 8259) strictly, from left to right.
struct JSONParser {
  private let bytes: UnsafeRawBufferPointer
  private var next = 0
  private var depth = 0
  /// Deeper texts are refused: each level is a call on the stack.
  private static let deepest = 64

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  mutating func document() throws(JSONFault) -> JSONDocument.Node {
    skipSpace()
    let node = try value()
    skipSpace()
    guard next == bytes.count else { throw fault("something follows the value") }
    return node
  }

  private func fault(_ rule: String) -> JSONFault { JSONFault(place: "byte \(next)", rule: rule) }

  private var current: UInt8? { next < bytes.count ? bytes[next] : nil }

  private mutating func skipSpace() {
    while let byte = current, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { next += 1 }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard current == byte else { return false }
    next += 1
    return true
  }

  private mutating func value() throws(JSONFault) -> JSONDocument.Node {
    switch current {
    case nil: throw fault("the text ends where a value belongs")
    case 0x7b: return try object()
    case 0x5b: return try array()
    case 0x22: return .string(try string())
    case 0x74: return try word("true", .bool(true))
    case 0x66: return try word("false", .bool(false))
    case 0x6e: return try word("null", .null)
    default: return .number(try number())
    }
  }

  private mutating func word(
    _ word: StaticString, _ node: JSONDocument.Node
  ) throws(JSONFault) -> JSONDocument.Node {
    for byte in word.description.utf8 {
      guard take(byte) else { throw fault("is no value") }
    }
    return node
  }

  private mutating func enter() throws(JSONFault) {
    depth += 1
    if depth > Self.deepest { throw fault("is nested deeper than \(Self.deepest) levels") }
    next += 1
    skipSpace()
  }

  private mutating func object() throws(JSONFault) -> JSONDocument.Node {
    try enter()
    var members: [(name: String, value: JSONDocument.Node)] = []
    // By bytes: canonical equivalence takes minutes for a name of combining marks.
    var names: Set<[UInt8]> = []
    if take(0x7d) {
      depth -= 1
      return .object([])
    }
    repeat {
      skipSpace()
      guard current == 0x22 else { throw fault("the name of a member belongs here") }
      let name = String(decoding: Self.unescaped(bytes[try string()]), as: UTF8.self)
      guard names.insert(Array(name.utf8)).inserted else { throw fault("two members have the same name") }
      skipSpace()
      guard take(0x3a) else { throw fault("a colon belongs here") }
      skipSpace()
      members.append((name, try value()))
      skipSpace()
    } while take(0x2c)
    guard take(0x7d) else { throw fault("a comma or } belongs here") }
    depth -= 1
    return .object(members)
  }

  private mutating func array() throws(JSONFault) -> JSONDocument.Node {
    try enter()
    var elements: [JSONDocument.Node] = []
    if take(0x5d) {
      depth -= 1
      return .array([], end: next - 1)
    }
    repeat {
      skipSpace()
      elements.append(try value())
      skipSpace()
    } while take(0x2c)
    guard take(0x5d) else { throw fault("a comma or ] belongs here") }
    depth -= 1
    return .array(elements, end: next - 1)
  }

  private mutating func number() throws(JSONFault) -> Range<Int> {
    let start = next
    _ = take(0x2d)
    if !take(0x30) { try digits() }
    if take(0x2e) { try digits() }
    if take(0x65) || take(0x45) {
      if !take(0x2b) { _ = take(0x2d) }
      try digits()
    }
    return start..<next
  }

  private mutating func digits() throws(JSONFault) {
    let start = next
    while let byte = current, ByteClass.isDigit(byte) { next += 1 }
    if next == start { throw fault("is no value") }
  }

  /// Reads a text with its quotes.
  ///
  /// - Returns: where what is between them is.
  private mutating func string() throws(JSONFault) -> Range<Int> {
    next += 1
    let start = next
    while true {
      guard let byte = current else { throw fault("the text ends within quotes") }
      next += 1
      switch byte {
      case 0x22:
        let range = start..<(next - 1)
        guard isUTF8(range) else {
          next = start
          throw fault("the text in quotes is not UTF-8")
        }
        return range
      case 0x5c: try escape()
      case 0..<0x20:
        next -= 1
        throw fault("a control character in quotes is not escaped")
      default: break
      }
    }
  }

  private func isUTF8(_ range: Range<Int>) -> Bool {
    let part = bytes[range]
    if part.allSatisfy({ $0 < 0x80 }) { return true }
    return String(validating: part, as: UTF8.self) != nil
  }

  private mutating func escape() throws(JSONFault) {
    guard let byte = current else { throw fault("the text ends within quotes") }
    next += 1
    if "\"\\/bfnrt".utf8.contains(byte) { return }
    guard byte == 0x75 else { throw fault("is no escape") }
    let unit = try unit()
    if (0xdc00..<0xe000).contains(unit) { throw fault("half of a surrogate pair stands alone") }
    if (0xd800..<0xdc00).contains(unit) {
      guard take(0x5c), take(0x75), (0xdc00..<0xe000).contains(try self.unit()) else {
        throw fault("half of a surrogate pair stands alone")
      }
    }
  }

  private mutating func unit() throws(JSONFault) -> UInt32 {
    var unit: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = current, let digit = Hex.digit(byte) else { throw fault("is no escape") }
      unit = unit << 4 | UInt32(digit)
      next += 1
    }
    return unit
  }

  /// The bytes of a text between quotes that has been checked.
  static func unescaped(_ text: Slice<UnsafeRawBufferPointer>) -> [UInt8] {
    guard text.contains(0x5c) else { return Array(text) }
    var out: [UInt8] = []
    unescape(text) { out.append($0) }
    return out
  }

  /// Hands out the bytes of a text between quotes that has been checked.
  static func unescape(_ text: Slice<UnsafeRawBufferPointer>, _ take: (UInt8) -> Void) {
    var index = text.startIndex
    func unit() -> UInt32 {
      defer { index += 4 }
      return text[index..<(index + 4)].reduce(0) { $0 << 4 | UInt32(Hex.digit($1) ?? 0) }
    }
    while index < text.endIndex {
      let byte = text[index]
      index += 1
      guard byte == 0x5c else {
        take(byte)
        continue
      }
      let escape = text[index]
      index += 1
      switch escape {
      case 0x62: take(0x08)
      case 0x66: take(0x0c)
      case 0x6e: take(0x0a)
      case 0x72: take(0x0d)
      case 0x74: take(0x09)
      case 0x75:
        var value = unit()
        if (0xd800..<0xdc00).contains(value) {
          index += 2
          value = 0x10000 + (value - 0xd800) << 10 + (unit() - 0xdc00)
        }
        guard let scalar = Unicode.Scalar(value) else { continue }
        for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { take(byte) }
      default: take(escape)
      }
    }
  }
}
