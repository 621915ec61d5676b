import Glibc

/// Reads JSON text (RFC 8259) once, from left to right, and notes where each value is, where the text stops being
/// JSON, and which keys stand twice in one object. Foundation's decoder keeps one of two keys and says nothing; it also
/// lets a trailing comma pass, and takes three times as long to give the values.
///
/// It takes any bytes, does not recurse, and takes time in proportion to the number of bytes. It never copies the text of a
/// value, which may be a secret: the checks of strings look at the bytes where they are. Keys are copied to be compared.
package struct JSONReader {
  /// The deepest nesting that is read. A list needs 6.
  package static let deepest = 128

  /// When two keys of an object are the same. Escapes are resolved first: `"\u0061"` is `"a"`.
  package enum KeyRule: Sendable {
    /// When their strings are, as in Swift's dictionaries: an accented letter is the same whether it is written as one scalar or
    /// two. For texts whose keys and values become strings that are compared: those with more combining marks in a row than
    /// `CombiningMarks.most` are refused.
    case sameCharacters
    /// When their bytes are. Strings may have any number of marks.
    case sameBytes
  }

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

  private struct Key: Hashable {
    /// The name as the rule compares it.
    enum Name: Hashable {
      case characters(String)
      case bytes([UInt8])
    }

    let object: Int
    let name: Name
  }

  struct Fault: Error {
    let offset: Int
    let rule: String
  }

  /// Up to so many keys of an object are compared with each other; those of a larger one are looked up.
  private static let fewKeys = 16

  /// Unsafe, so that a secret is read where it is. It is lent for the call of `read`, and each access is behind a comparison
  /// with its count. Of bytes, because a raw buffer works out its count each time that it is asked.
  let bytes: UnsafeBufferPointer<UInt8>
  let rule: KeyRule
  private let mostDuplicates: Int
  var position = 0
  var nodes: [JSONNode] = []
  private var stack: [Container] = []
  /// The keys of the objects that are open, by their nodes.
  private var keys: [Int] = []
  private var seen: Set<Key> = []
  private var duplicates: [JSONDuplicate] = []
  private var duplicateCount = 0

  private init(_ bytes: UnsafeRawBufferPointer, _ rule: KeyRule, _ mostDuplicates: Int) {
    // Whatever the memory is bound to, bytes may be read from it.
    self.bytes = bytes.assumingMemoryBound(to: UInt8.self)
    self.rule = rule
    self.mostDuplicates = mostDuplicates
  }

  /// Reads a text to its end, or to where it stops being JSON.
  ///
  /// - Parameters:
  ///   - bytes: the text in UTF-8. Nothing refers to it afterwards.
  ///   - rule: when two keys are the same.
  ///   - mostDuplicates: how many duplicate keys are kept with their places. All are counted.
  package static func read(
    _ bytes: UnsafeRawBufferPointer, keys rule: KeyRule, mostDuplicates: Int
  ) -> JSONOutline {
    var reader = JSONReader(bytes, rule, mostDuplicates)
    var fault: JSONSyntaxFault?
    do throws(Fault) {
      try reader.document()
    } catch {
      fault = JSONSyntaxFault(offset: error.offset, rule: error.rule, place: reader.place)
    }
    return JSONOutline(
      nodes: reader.nodes, duplicates: reader.duplicates, duplicateCount: reader.duplicateCount, fault: fault)
  }

  private var place: [JSONStep] {
    stack.compactMap { container in
      switch container {
      case .array(_, let index): .index(index)
      case .object(_, let key, _): key.map(JSONStep.key)
      }
    }
  }

  func fault(_ rule: String, at offset: Int? = nil) -> Fault {
    Fault(offset: min(offset ?? position, bytes.count), rule: rule)
  }

  // MARK: Structure

  private mutating func document() throws(Fault) {
    guard bytes.count <= Int32.max else { throw fault("a text has less than 2 GiB") }
    // A list of a mebibyte fits; larger texts are mostly one long string.
    nodes.reserveCapacity(min(bytes.count / 8, 1 << 17))
    // A byte order mark may be ignored (RFC 8259, section 8.1).
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) { position = 3 }
    var expected = Expected.value
    while true {
      while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
      guard position < bytes.count else {
        if case .nothing = expected { return }
        throw fault("the text ends early")
      }
      expected = try next(expected)
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09
  }

  /// Reads one token and says what may follow it.
  private mutating func next(_ expected: Expected) throws(Fault) -> Expected {
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
      try key()
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

  private mutating func open(_ container: Container, _ kind: JSONNode.Kind) throws(Fault) {
    if stack.count == Self.deepest { throw fault("nested deeper than \(Self.deepest) levels") }
    stack.append(container)
    nodes.append(JSONNode(kind, position..<position, next: 0))
    position += 1
  }

  private mutating func close(isEmpty: Bool) -> Expected {
    position += 1
    switch stack.removeLast() {
    case .array(let node, let index):
      nodes[node].close(position, next: nodes.count, count: isEmpty ? 0 : index + 1)
    case .object(let node, _, let firstKey):
      nodes[node].close(position, next: nodes.count, count: keys.count - firstKey)
      keys.removeSubrange(firstKey...)
    }
    return stack.isEmpty ? .nothing : .commaOrEnd
  }

  private mutating func commaOrEnd(_ byte: UInt8) throws(Fault) -> Expected {
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

  // MARK: Keys

  private mutating func key() throws(Fault) {
    guard case .object(let object, _, let firstKey) = stack.last else { return }
    let key = nodes.count
    try appendString()
    stack[stack.count - 1] = .object(node: object, key: key, firstKey: firstKey)
    let isKnown: Bool
    if keys.count - firstKey < Self.fewKeys {
      isKnown = keys[firstKey...].contains { isSame($0, key) }
    } else {
      if keys.count - firstKey == Self.fewKeys {
        for key in keys[firstKey...] { seen.insert(Key(object: object, name: name(of: key))) }
      }
      isKnown = !seen.insert(Key(object: object, name: name(of: key))).inserted
    }
    keys.append(key)
    if isKnown {
      duplicateCount += 1
      if duplicates.count < mostDuplicates { duplicates.append(JSONDuplicate(key: key, place: place)) }
    }
  }

  private func name(of node: Int) -> Key.Name {
    let text = nodes[node].text(in: UnsafeRawBufferPointer(bytes))
    return rule == .sameCharacters ? .characters(text) : .bytes(Array(text.utf8))
  }

  private func isSame(_ a: Int, _ b: Int) -> Bool {
    guard nodes[a].isPlain, nodes[b].isPlain else { return name(of: a) == name(of: b) }
    let (a, b) = (nodes[a].range, nodes[b].range)
    guard a.count == b.count, let start = bytes.baseAddress else { return false }
    return memcmp(start + a.lowerBound, start + b.lowerBound, a.count) == 0
  }
}
