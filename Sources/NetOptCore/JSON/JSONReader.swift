import Glibc

/// Reads a JSON text (RFC 8259) in one pass. Records the position of each value, the first syntax fault, and
/// duplicate keys. netopt does not use Foundation's decoder, because the decoder silently keeps one of two
/// duplicate keys, accepts a trailing comma, and takes three times as long.
///
/// The input may be any bytes. The reader does not recurse, and its time is proportional to the number of
/// bytes. It checks strings in place and never copies the text of a value, because the value may be a secret.
/// It copies only keys, to compare them.
package struct JSONReader {
  /// The maximum depth: how many arrays and objects may be open at once. An IP list needs 6.
  package static let deepest = 128

  /// The rule by which two keys of an object are equal. The reader decodes escapes first: `"\u0061"` equals
  /// `"a"`.
  package enum KeyRule: Sendable {
    /// Keys are equal if their Swift strings are equal, as in a `Dictionary`. An accented letter of one
    /// Unicode scalar equals the letter followed by a combining accent. For texts whose strings are later
    /// compared as `String`. The reader rejects strings with a long run (`SlowText`).
    case sameCharacters
    /// Keys are equal if their UTF-8 bytes are equal. Strings may have long runs.
    case sameBytes
  }

  /// What may come next in the text.
  private enum Expected {
    case value
    /// A value, or the end of an array.
    case valueOrEnd
    case key
    /// A key, or the end of an object.
    case keyOrEnd
    case colon
    /// A comma, or the end of the array or object.
    case commaOrEnd
    /// Only white space: the outermost value is complete.
    case nothing
  }

  /// An array or object whose end the reader has not reached. `node` is the index of its node in `nodes`.
  private enum Container {
    /// `index` is the index of the current element.
    case array(node: Int, index: Int)
    /// `key` is the index in `nodes` of the current key; `nil` before the first one. `firstKey` is the index
    /// in `keys` of the object's first key.
    case object(node: Int, key: Int?, firstKey: Int)
  }

  /// A key of an object, for the set `seen`.
  private struct Key: Hashable {
    /// The text of the key, in the form that the key rule compares.
    enum Name: Hashable {
      case characters(String)
      case bytes([UInt8])
    }

    /// The index in `nodes` of the object.
    let object: Int
    let name: Name
  }

  /// A syntax fault without its path.
  struct Fault: Error {
    /// The offset in the text, in bytes.
    let offset: Int
    /// The violated rule in words.
    let rule: String
  }

  /// The number of keys of an object that the reader compares one by one, which is faster than a set for few
  /// keys. If the object has more keys, the reader puts all of them into `seen`.
  private static let fewKeys = 16

  /// The text. The buffer is unsafe, so that the reader can check secrets in place. It is valid only during
  /// `read`. The reader compares each index with the count before it reads a byte. The buffer is typed,
  /// because a raw buffer computes its count at each access.
  let bytes: UnsafeBufferPointer<UInt8>
  /// The rule by which two keys are equal.
  let rule: KeyRule
  /// The maximum length of `duplicates`.
  private let mostDuplicates: Int
  /// The offset in `bytes` of the next byte to read.
  var position = 0
  /// The nodes of the values and keys that were read.
  var nodes: [JSONNode] = []
  /// The open arrays and objects, outermost first.
  private var stack: [Container] = []
  /// The indices in `nodes` of the keys of all open objects, grouped by object, outermost first.
  private var keys: [Int] = []
  /// The keys of all objects with more than `fewKeys` keys, open or closed.
  private var seen: Set<Key> = []
  /// The first duplicate keys.
  private var duplicates: [JSONDuplicate] = []
  /// The number of all duplicate keys.
  private var duplicateCount = 0

  private init(_ bytes: UnsafeRawBufferPointer, _ rule: KeyRule, _ mostDuplicates: Int) {
    // Memory bound to any type may be read as bytes.
    self.bytes = bytes.assumingMemoryBound(to: UInt8.self)
    self.rule = rule
    self.mostDuplicates = mostDuplicates
  }

  /// Reads a text to its end or to its first syntax fault.
  ///
  /// - Parameters:
  ///   - bytes: the text in UTF-8. The buffer need not stay valid after the call.
  ///   - rule: the rule by which two keys are equal.
  ///   - mostDuplicates: the maximum number of duplicate keys to return. The reader counts all duplicate
  ///     keys.
  package static func read(
    _ bytes: UnsafeRawBufferPointer, keys rule: KeyRule, mostDuplicates: Int
  ) -> JSONOutline {
    var reader = JSONReader(bytes, rule, mostDuplicates)
    var fault: JSONSyntaxFault?
    do throws(Fault) {
      try reader.document()
    } catch {
      fault = JSONSyntaxFault(offset: error.offset, rule: error.rule, path: reader.path)
    }
    return JSONOutline(
      nodes: reader.nodes, duplicates: reader.duplicates, duplicateCount: reader.duplicateCount, fault: fault)
  }

  /// The path to the current element or member.
  private var path: [JSONStep] {
    stack.compactMap { container in
      switch container {
      case .array(_, let index): .index(index)
      case .object(_, let key, _): key.map(JSONStep.key)
      }
    }
  }

  /// Returns a fault at an offset; without one, at `position`.
  func fault(_ rule: String, at offset: Int? = nil) -> Fault {
    Fault(offset: min(offset ?? position, bytes.count), rule: rule)
  }

  // MARK: Structure

  /// Reads the whole text.
  private mutating func document() throws(Fault) {
    guard bytes.count <= Int32.max else { throw fault("a text must be smaller than 2 GiB") }
    // Enough for a list of 1 MiB. A larger text is usually one long string with few other nodes.
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

  /// Reads one token: a value, a key, a bracket, a colon or a comma. Returns what may follow.
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
    case (.key, _): throw fault("a key in quotes is expected here")
    case (.keyOrEnd, _): throw fault("a key in quotes or } is expected here")
    case (.colon, _): throw fault("a colon is expected here")
    case (.nothing, _): throw fault("more text follows the end of the document")
    }
  }

  /// Begins an array or object.
  private mutating func open(_ container: Container, _ kind: JSONNode.Kind) throws(Fault) {
    if stack.count == Self.deepest { throw fault("nested deeper than \(Self.deepest) levels") }
    stack.append(container)
    nodes.append(JSONNode(kind, position..<position, next: 0))
    position += 1
  }

  /// Ends the innermost array or object, and returns what may follow.
  ///
  /// - Parameter isEmpty: whether an array has no elements. Ignored for an object.
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

  /// Reads a comma or the end of the innermost array or object, and returns what may follow.
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
    case (.array, _): throw fault("a comma or ] is expected here")
    default: throw fault("a comma or } is expected here")
    }
  }

  // MARK: Keys

  /// Reads a key and checks whether the object has the key already.
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
      if duplicates.count < mostDuplicates { duplicates.append(JSONDuplicate(key: key, path: path)) }
    }
  }

  /// Returns the text of a key, in the form that the key rule compares.
  private func name(of node: Int) -> Key.Name {
    let text = nodes[node].text(in: UnsafeRawBufferPointer(bytes))
    return rule == .sameCharacters ? .characters(text) : .bytes(Array(text.utf8))
  }

  /// Whether two keys are equal by the key rule. `a` and `b` are indices in `nodes`.
  private func isSame(_ a: Int, _ b: Int) -> Bool {
    guard nodes[a].isPlain, nodes[b].isPlain else { return name(of: a) == name(of: b) }
    let (a, b) = (nodes[a].range, nodes[b].range)
    guard a.count == b.count, let start = bytes.baseAddress else { return false }
    return memcmp(start + a.lowerBound, start + b.lowerBound, a.count) == 0
  }
}
