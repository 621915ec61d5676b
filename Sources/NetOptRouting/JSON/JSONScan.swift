import NetOptCore

/// Reads JSON text (RFC 8259) once, from left to right, and tells what Foundation's decoder does not: where the text
/// stops being JSON, and which keys stand twice in one object. The decoder keeps one of the two and says nothing; it
/// also lets a trailing comma pass, and takes three times as long to give the values.
///
/// It takes any bytes, does not recurse, and takes time in proportion to the number of bytes.
struct JSONScan {
  /// The deepest nesting that is read. A list needs 6.
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
    case array(node: Int, index: Int)
    /// `firstKey` is where its keys begin in `keys`.
    case object(node: Int, key: Int?, firstKey: Int)
  }

  /// Keys are the same when their strings are, as in Swift's dictionaries: `"\u0061"` is `"a"`, and an accented
  /// letter is the same whether it is written as one scalar or two.
  private struct Key: Hashable {
    let object: Int
    let name: String
  }

  /// Up to so many keys of an object are compared with each other; those of a larger one are looked up.
  private static let fewKeys = 16

  private struct SyntaxFault: Error {
    let offset: Int
    let message: String
  }

  private let bytes: [UInt8]
  private var position = 0
  private var stack: [Container] = []
  private var nodes: [JSONDocument.Node] = []
  /// The keys of the objects that are open, by their nodes.
  private var keys: [Int] = []
  private var seen: Set<Key> = []

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Reads `bytes` and reports every duplicate key, and the place where the text stops being JSON.
  ///
  /// - Returns: the values, or `nil` when it is not JSON to its end.
  static func read(_ bytes: [UInt8], _ report: inout FaultReport) -> JSONDocument? {
    var scan = JSONScan(bytes)
    scan.nodes.reserveCapacity(bytes.count / 8)
    do throws(SyntaxFault) {
      try scan.document(&report)
      return JSONDocument(bytes: bytes, nodes: scan.nodes)
    } catch {
      let before = bytes[..<error.offset]
      let line = before.count { $0 == 0x0a } + 1
      // Continuation bytes are no characters of their own.
      let column = before.reversed().prefix { $0 != 0x0a }.count { $0 & 0xc0 != 0x80 } + 1
      report.add(scan.path, "not JSON: line \(line), column \(column): \(error.message)")
      return nil
    }
  }

  /// The text of a string in JSON that was read before.
  ///
  /// - Parameter start: the place behind its first quote.
  static func text(in bytes: [UInt8], from start: Int) -> String {
    var scan = JSONScan(bytes)
    scan.position = start - 1
    return (try? scan.string()) ?? ""
  }

  private var path: JSONPath {
    stack.reduce(JSONPath()) { path, container in
      switch container {
      case .array(_, let index): path.index(index)
      case .object(_, let key, _): key.map { path.key(text(of: $0)) } ?? path
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
      try open(.object(node: nodes.count, key: nil, firstKey: keys.count), .object)
      return .keyOrEnd
    case (.value, UInt8(ascii: "[")), (.valueOrEnd, UInt8(ascii: "[")):
      try open(.array(node: nodes.count, index: 0), .array)
      return .valueOrEnd
    case (.valueOrEnd, UInt8(ascii: "]")), (.keyOrEnd, UInt8(ascii: "}")):
      return close(isEmpty: true)
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

  private mutating func open(
    _ container: Container, _ kind: JSONDocument.Node.Kind
  ) throws(SyntaxFault) {
    if stack.count == Self.deepest { throw fault("nested deeper than \(Self.deepest) levels") }
    stack.append(container)
    nodes.append(JSONDocument.Node(kind, position..<position, next: 0))
    position += 1
  }

  private mutating func close(isEmpty: Bool) -> Expected {
    position += 1
    switch stack.removeLast() {
    case .array(let node, let index):
      nodes[node].end(position, next: nodes.count, count: isEmpty ? 0 : index + 1)
    case .object(let node, _, let firstKey):
      nodes[node].end(position, next: nodes.count, count: keys.count - firstKey)
      keys.removeSubrange(firstKey...)
    }
    return stack.isEmpty ? .nothing : .commaOrEnd
  }

  private mutating func commaOrEnd(_ byte: UInt8) throws(SyntaxFault) -> Expected {
    switch (stack.last, byte) {
    case (.array, UInt8(ascii: "]")), (.object, UInt8(ascii: "}")):
      return close(isEmpty: false)
    case (.array(let node, let index), UInt8(ascii: ",")):
      stack[stack.count - 1] = .array(node: node, index: index + 1)
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
    guard case .object(let object, _, let firstKey) = stack.last else { return }
    let key = nodes.count
    try appendString()
    stack[stack.count - 1] = .object(node: object, key: key, firstKey: firstKey)
    let isKnown: Bool
    if keys.count - firstKey < Self.fewKeys {
      isKnown = keys[firstKey...].contains { isSame($0, key) }
    } else {
      if keys.count - firstKey == Self.fewKeys {
        for key in keys[firstKey...] { seen.insert(Key(object: object, name: text(of: key))) }
      }
      isKnown = !seen.insert(Key(object: object, name: text(of: key))).inserted
    }
    keys.append(key)
    if isKnown {
      report.add(path, "this key stands more than once, and only one of them would count; remove the others")
    }
  }

  private func text(of node: Int) -> String { JSONDocument.text(of: nodes[node], in: bytes) }

  private func isSame(_ a: Int, _ b: Int) -> Bool {
    guard nodes[a].isPlain, nodes[b].isPlain else { return text(of: a) == text(of: b) }
    return bytes[nodes[a].range].elementsEqual(bytes[nodes[b].range])
  }

  // MARK: Scalars

  private mutating func scalar() throws(SyntaxFault) {
    let start = position
    switch bytes[position] {
    case UInt8(ascii: "\""): return try appendString()
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try number()
    case UInt8(ascii: "t"): try literal("true")
    case UInt8(ascii: "f"): try literal("false")
    case UInt8(ascii: "n"): try literal("null")
    default: throw fault("a value belongs here")
    }
    let isNumber = bytes[start] < UInt8(ascii: "A")
    nodes.append(JSONDocument.Node(isNumber ? .number : .literal, start..<position, next: nodes.count + 1))
  }

  private mutating func appendString() throws(SyntaxFault) {
    let start = position
    let isPlain = try skipString()
    nodes.append(
      JSONDocument.Node(.string, (start + 1)..<(position - 1), next: nodes.count + 1, isPlain: isPlain))
    // What is made of the string compares it, which takes minutes for a million bytes of marks.
    if !isPlain, Array(text(of: nodes.count - 1).utf8).withUnsafeBytes({ CombiningMarks.hasLongRun($0) }) {
      throw fault(
        "this string has more than \(CombiningMarks.most) combining marks in a row, which no text has",
        at: start)
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
  /// - Returns: whether it is all ASCII without escapes.
  private mutating func skipString() throws(SyntaxFault) -> Bool {
    let start = position
    var isPlain = true
    position += 1
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position += 1
        return isPlain
      case UInt8(ascii: "\\"):
        isPlain = false
        _ = try escape()
      case ..<0x20:
        throw fault("a control character in a string; write it as an escape")
      case 0x80...:
        isPlain = false
        position += 1
      default:
        position += 1
      }
    }
    throw fault("this string is not closed", at: start)
  }

  private mutating func string() throws(SyntaxFault) -> String {
    let start = position
    _ = try skipString()
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
