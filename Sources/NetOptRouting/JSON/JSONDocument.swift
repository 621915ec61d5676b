/// The values of a JSON text: where each one is, and what comes behind it. Nothing is copied out of the text before it is
/// asked for.
struct JSONDocument {
  /// A value, or the key of a member, which stands before its value. What an array or object has follows it.
  struct Node {
    /// The kinds of values. The literals are true, false and null.
    enum Kind: UInt8 { case object, array, string, number, literal }

    let kind: Kind
    /// Whether a string is all ASCII without escapes: then its bytes are its text.
    let isPlain: Bool
    private let start: Int32
    private var end: Int32
    private(set) var next: Int32
    private(set) var count: Int32 = 0

    /// A list has a mebibyte at most: offsets are small.
    init(_ kind: Kind, _ range: Range<Int>, next: Int, isPlain: Bool = false) {
      self.kind = kind
      self.isPlain = isPlain
      start = Int32(truncatingIfNeeded: range.lowerBound)
      end = Int32(truncatingIfNeeded: range.upperBound)
      self.next = Int32(truncatingIfNeeded: next)
    }

    /// Its bytes; those of a string without the quotes.
    var range: Range<Int> { Int(start)..<Int(end) }

    /// Notes where an array or object ends.
    mutating func end(_ position: Int, next: Int, count: Int) {
      end = Int32(truncatingIfNeeded: position)
      self.next = Int32(truncatingIfNeeded: next)
      self.count = Int32(truncatingIfNeeded: count)
    }
  }

  let bytes: [UInt8]
  let nodes: [Node]

  /// The value that is the whole text.
  var root: JSONElement { JSONElement(document: self, node: 0) }

  /// The text of a string.
  static func text(of node: Node, in bytes: [UInt8]) -> String {
    if node.isPlain { return String(decoding: bytes[node.range], as: UTF8.self) }
    return JSONScan.text(in: bytes, from: node.range.lowerBound)
  }
}

/// A value of a JSON text.
struct JSONElement {
  let document: JSONDocument
  let node: Int

  private var value: JSONDocument.Node { document.nodes[node] }

  /// What kind of value it is.
  var kind: JSONDocument.Node.Kind { value.kind }

  /// How many elements an array has, or how many members an object.
  var count: Int { Int(value.count) }

  /// The text of a string.
  var text: String? {
    value.kind == .string ? JSONDocument.text(of: value, in: document.bytes) : nil
  }

  /// The number, when it is a whole one that fits; written with a fraction or an exponent too.
  var integer: Int64? {
    guard value.kind == .number else { return nil }
    let digits = document.bytes[value.range]
    if digits.count <= 18, digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) {
      return digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
    let text = String(decoding: digits, as: UTF8.self)
    return Int64(text) ?? Double(text).flatMap { Int64(exactly: $0) }
  }

  /// Calls a closure with each element of an array until it returns false.
  func forEachElement(_ body: (JSONElement) -> Bool) {
    var child = node + 1
    for _ in 0..<count {
      if !body(JSONElement(document: document, node: child)) { return }
      child = Int(document.nodes[child].next)
    }
  }

  /// Calls a closure with each member of an object.
  func forEachMember(_ body: (_ key: JSONElement, _ value: JSONElement) -> Void) {
    var key = node + 1
    for _ in 0..<count {
      body(JSONElement(document: document, node: key), JSONElement(document: document, node: key + 1))
      key = Int(document.nodes[key + 1].next)
    }
  }

  /// Whether a key is this name.
  func isKey(_ name: StaticString) -> Bool {
    guard value.isPlain else { return text == name.description }
    let range = value.range
    guard range.count == name.utf8CodeUnitCount else { return false }
    return document.bytes.withUnsafeBufferPointer { bytes in
      // As many bytes as were compared above.
      name.withUTF8Buffer { name in
        var index = 0
        while index < name.count {
          if bytes[range.lowerBound + index] != name[index] { return false }
          index += 1
        }
        return true
      }
    }
  }
}
