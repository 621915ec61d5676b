/// Reads JSON text (RFC 8259) once, from left to right, for what Foundation's decoder does not tell: where the text
/// stops being JSON, and which keys stand twice in one object. The decoder keeps one of the two and says nothing; it
/// also lets a trailing comma pass.
///
/// It takes any bytes, keeps no values, does not recurse, and takes time in proportion to the number of bytes.
struct JSONScan {
  /// The deepest nesting that is read. The decoder stops at 512; a list needs 6.
  static let deepest = 128

  /// What may come next.
  private enum Expected {
    case value
    case valueOrEnd
    case key
    case keyOrEnd
    case colon
    case commaOrEnd
    case nothing
  }

  /// An array or object that is open, and the place in it.
  private enum Container {
    case array(index: Int)
    case object(id: Int, key: String?)
  }

  /// Keys are the same when their strings are: as in the decoder's dictionaries, `"\u0061"` is `"a"`, and an
  /// accented letter is the same whether it is written as one scalar or two.
  private struct Key: Hashable {
    let object: Int
    let name: String
  }

  private struct SyntaxFault: Error {
    let offset: Int
    let message: String
  }

  private let bytes: [UInt8]
  private var position = 0
  private var stack: [Container] = []
  private var objects = 0
  private var seen: Set<Key> = []

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Reads `bytes` and reports every duplicate key, and the place where the text stops being JSON.
  ///
  /// - Returns: whether it is JSON to its end.
  static func check(_ bytes: [UInt8], _ report: inout FaultReport) -> Bool {
    var scan = JSONScan(bytes)
    do throws(SyntaxFault) {
      try scan.document(&report)
      return true
    } catch {
      let before = bytes[..<error.offset]
      let line = before.count { $0 == 0x0a } + 1
      // Continuation bytes are no characters of their own.
      let column = before.reversed().prefix { $0 != 0x0a }.count { $0 & 0xc0 != 0x80 } + 1
      report.add(scan.path, "not JSON: line \(line), column \(column): \(error.message)")
      return false
    }
  }

  private var path: JSONPath {
    stack.reduce(JSONPath()) { path, container in
      switch container {
      case .array(let index): path.index(index)
      case .object(_, let key): key.map(path.key) ?? path
      }
    }
  }

  private func fault(_ message: String, at offset: Int? = nil) -> SyntaxFault {
    SyntaxFault(offset: min(offset ?? position, bytes.count), message: message)
  }

  // MARK: Structure

  private mutating func document(_ report: inout FaultReport) throws(SyntaxFault) {
    // A byte order mark may be ignored (RFC 8259, section 8.1), and the decoder ignores it.
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) { position = 3 }
    var expected = Expected.value
    while true {
      while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
      guard position < bytes.count else {
        if case .nothing = expected { return }
        throw fault("the text ends early")
      }
      expected = try next(expected, &report)
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09
  }

  /// Reads one token and says what may follow it.
  private mutating func next(
    _ expected: Expected, _ report: inout FaultReport
  ) throws(SyntaxFault) -> Expected {
    switch (expected, bytes[position]) {
    case (.value, UInt8(ascii: "{")), (.valueOrEnd, UInt8(ascii: "{")):
      objects += 1
      try open(.object(id: objects, key: nil))
      return .keyOrEnd
    case (.value, UInt8(ascii: "[")), (.valueOrEnd, UInt8(ascii: "[")):
      try open(.array(index: 0))
      return .valueOrEnd
    case (.valueOrEnd, UInt8(ascii: "]")), (.keyOrEnd, UInt8(ascii: "}")):
      return close()
    case (.value, _), (.valueOrEnd, _):
      try scalar()
      return stack.isEmpty ? .nothing : .commaOrEnd
    case (.key, UInt8(ascii: "\"")), (.keyOrEnd, UInt8(ascii: "\"")):
      try key(&report)
      return .colon
    case (.colon, UInt8(ascii: ":")):
      position += 1
      return .value
    case (.commaOrEnd, let byte):
      return try commaOrEnd(byte)
    case (.key, _): throw fault("a key in quotes belongs here")
    case (.keyOrEnd, _): throw fault("a key in quotes or } belongs here")
    case (.colon, _): throw fault("a colon belongs here")
    case (.nothing, _): throw fault("something follows the end of the document")
    }
  }

  private mutating func open(_ container: Container) throws(SyntaxFault) {
    if stack.count == Self.deepest { throw fault("nested deeper than \(Self.deepest) levels") }
    stack.append(container)
    position += 1
  }

  private mutating func close() -> Expected {
    stack.removeLast()
    position += 1
    return stack.isEmpty ? .nothing : .commaOrEnd
  }

  private mutating func commaOrEnd(_ byte: UInt8) throws(SyntaxFault) -> Expected {
    switch (stack.last, byte) {
    case (.array, UInt8(ascii: "]")), (.object, UInt8(ascii: "}")):
      return close()
    case (.array(let index), UInt8(ascii: ",")):
      stack[stack.count - 1] = .array(index: index + 1)
      position += 1
      return .value
    case (.object, UInt8(ascii: ",")):
      position += 1
      return .key
    case (.array, _): throw fault("a comma or ] belongs here")
    default: throw fault("a comma or } belongs here")
    }
  }

  private mutating func key(_ report: inout FaultReport) throws(SyntaxFault) {
    guard case .object(let id, _) = stack.last else { return }
    let name = try string()
    stack[stack.count - 1] = .object(id: id, key: name)
    if !seen.insert(Key(object: id, name: name)).inserted {
      report.add(path, "this key stands more than once, and only one of them would count; remove the others")
    }
  }

  // MARK: Scalars

  private mutating func scalar() throws(SyntaxFault) {
    switch bytes[position] {
    case UInt8(ascii: "\""): try skipString()
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try number()
    case UInt8(ascii: "t"): try literal("true")
    case UInt8(ascii: "f"): try literal("false")
    case UInt8(ascii: "n"): try literal("null")
    default: throw fault("a value belongs here")
    }
  }

  private mutating func literal(_ text: StaticString) throws(SyntaxFault) {
    let expected = text.description.utf8
    guard bytes[position...].starts(with: expected) else { throw fault("a value belongs here") }
    position += expected.count
  }

  private mutating func number() throws(SyntaxFault) {
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
    if !isNumber { throw fault("this number is not written as JSON writes numbers", at: start) }
  }

  /// Passes over digits and returns how many there were.
  private mutating func digits() -> Int {
    let start = position
    while position < bytes.count, (0x30...0x39).contains(bytes[position]) { position += 1 }
    return position - start
  }

  /// Passes over a string. `position` is at its first quote before, and behind its last one afterwards.
  ///
  /// - Returns: whether it has escapes.
  @discardableResult
  private mutating func skipString() throws(SyntaxFault) -> Bool {
    let start = position
    var hasEscapes = false
    position += 1
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position += 1
        return hasEscapes
      case UInt8(ascii: "\\"):
        hasEscapes = true
        _ = try escape()
      case ..<0x20:
        throw fault("a control character in a string; write it as an escape")
      default:
        position += 1
      }
    }
    throw fault("this string is not closed", at: start)
  }

  private mutating func string() throws(SyntaxFault) -> String {
    let start = position
    guard try skipString() else {
      return String(decoding: bytes[(start + 1)..<(position - 1)], as: UTF8.self)
    }
    let end = position - 1
    var text: [UInt8] = []
    position = start + 1
    while position < end {
      if bytes[position] == UInt8(ascii: "\\") {
        text += String(Character(try escape())).utf8
      } else {
        text.append(bytes[position])
        position += 1
      }
    }
    position = end + 1
    return String(decoding: text, as: UTF8.self)
  }

  /// Reads an escape sequence, both halves of a surrogate pair at once, and passes over it.
  private mutating func escape() throws(SyntaxFault) -> Unicode.Scalar {
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
      guard UTF16.isLeadSurrogate(unit), bytes[position...].starts(with: [0x5c, 0x75]) else { break }
      position += 2
      guard let trail = hexadecimal(), UTF16.isTrailSurrogate(trail) else { break }
      let pair = 0x10000 + (UInt32(unit) - 0xd800) << 10 + (UInt32(trail) - 0xdc00)
      if let scalar = Unicode.Scalar(pair) { return scalar }
    default: break
    }
    throw fault("this escape does not stand for a character", at: start)
  }

  /// Reads four hexadecimal digits.
  private mutating func hexadecimal() -> UInt16? {
    let text = bytes[position...].prefix(4)
    guard text.count == 4 else { return nil }
    var value: UInt16 = 0
    for byte in text {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
      value = value << 4 | UInt16(digit)
    }
    position += 4
    return value
  }
}
