import NetOptCore
package import NetOptCrypto

/// A parsed JSON text (RFC 8259). The document keeps the text in memory that is wiped when the last reference
/// goes away. A decoder would leave the secrets of a key ring in strings, which are not wiped. Numbers keep
/// their digits, and members keep their order.
package final class JSONDocument: Sendable {
  /// The JSON text in UTF-8.
  let text: SecretBytes
  /// The positions of all values and member names in the text.
  let nodes: [JSONNode]

  private init(_ text: SecretBytes, _ nodes: [JSONNode]) {
    self.text = text
    self.nodes = nodes
  }

  /// Parses a text and returns its outermost value.
  ///
  /// - Parameter text: UTF-8. The document refers to the text and does not copy it.
  /// - Throws: `JSONFault` with the offset of the byte at which the text breaks a rule. Two members of one
  ///   object with the same name break a rule too.
  package static func read(_ text: SecretBytes) throws(JSONFault) -> JSONPart {
    // Names are equal if their decoded bytes are equal. `member` compares names in this way too.
    let outline = text.withUnsafeBytes { JSONReader.read($0, keys: .sameBytes, mostDuplicates: 1) }
    if let duplicate = outline.duplicates.first {
      // The offset of the byte after the closing quote of the second name.
      let offset = outline.nodes[duplicate.key].range.upperBound + 1
      throw JSONFault(location: "byte \(offset)", rule: "two members have the same name")
    }
    if let fault = outline.fault { throw JSONFault(location: "byte \(fault.offset)", rule: fault.rule) }
    return JSONPart(document: JSONDocument(text, outline.nodes), index: 0, path: "$")
  }
}

/// A rule that a JSON text breaks, and where. The fault contains no part of the text except member names.
package struct JSONFault: Error, Hashable, Sendable {
  /// The location, for example `byte 12` if the text is not valid JSON, or `$.keys[0].id` if a value breaks a
  /// rule.
  package let location: String
  /// The broken rule, in words.
  package let rule: String
}

/// A value in a JSON document.
package struct JSONPart: Sendable {
  let document: JSONDocument
  /// The index of the value in `document.nodes`.
  let index: Int
  /// The path of the value, for example `$.keys[0].id`.
  package let path: String

  private var node: JSONNode { document.nodes[index] }

  /// Makes a fault at this value.
  package func fault(_ rule: String) -> JSONFault { JSONFault(location: path, rule: rule) }

  /// The members of an object.
  ///
  /// - Throws: `JSONFault` if the value is not an object, or a name takes long to compare as a string
  ///   (`SlowText`).
  package func members() throws(JSONFault) -> [(name: String, value: JSONPart)] {
    guard node.kind == .object else { throw fault("must be an object") }
    let named: [(String, Int)] = document.text.withUnsafeBytes { bytes in
      var key = index + 1
      return (0..<node.count).map { _ in
        defer { key = document.nodes[key + 1].next }
        return (document.nodes[key].text(in: bytes), key + 1)
      }
    }
    guard !named.contains(where: { SlowText.hasLongRun($0.0) }) else {
      throw fault("a member's name is not usable: \(SlowText.violation)")
    }
    return named.map {
      ($0.0, JSONPart(document: document, index: $0.1, path: "\(path).\($0.0.printable(200))"))
    }
  }

  /// A member of an object; `nil` if it is missing or null.
  package func member(_ name: String) throws(JSONFault) -> JSONPart? {
    guard node.kind == .object else { throw fault("must be an object") }
    let value = document.text.withUnsafeBytes { bytes in
      var key = index + 1
      for _ in 0..<node.count {
        if document.nodes[key].isText(name, in: bytes) { return key + 1 as Int? }
        key = document.nodes[key + 1].next
      }
      return nil
    }
    guard let value, document.nodes[value].kind != .null else { return nil }
    return JSONPart(document: document, index: value, path: "\(path).\(name)")
  }

  /// A required member of an object, which must not be null.
  package func required(_ name: String) throws(JSONFault) -> JSONPart {
    guard let member = try member(name) else { throw fault("has no \(name)") }
    return member
  }

  /// The elements of an array.
  package func elements() throws(JSONFault) -> JSONElements {
    guard node.kind == .array else { throw fault("must be an array") }
    return JSONElements(document: document, first: index + 1, count: node.count, path: path)
  }

  /// The value as a string, without its quotes and escapes.
  ///
  /// - Throws: `JSONFault` if the value is not a JSON string, or takes long to compare as a Swift string
  ///   (`SlowText`).
  package func string() throws(JSONFault) -> String {
    let text = try anyString()
    guard !SlowText.hasLongRun(text) else { throw fault(SlowText.violation) }
    return text
  }

  /// The UTF-8 bytes of a JSON string, without its quotes and escapes. Unlike `string`, this also returns
  /// texts that take long to compare as Swift strings.
  package func bytes() throws(JSONFault) -> [UInt8] { Array(try anyString().utf8) }

  /// The value as a string, even if it takes long to compare.
  private func anyString() throws(JSONFault) -> String {
    guard node.kind == .string else { throw fault("must be a text") }
    return document.text.withUnsafeBytes { node.text(in: $0) }
  }

  /// The bytes of a JSON string that is a secret, without its quotes and escapes. They go straight into
  /// memory that is wiped after use.
  package func secret() throws(JSONFault) -> SecretBytes {
    guard node.kind == .string else { throw fault("must be a text") }
    return document.text.withUnsafeBytes { bytes in
      var count = 0
      node.forEachByte(in: bytes) { _ in count += 1 }
      return SecretBytes(count: count) { memory in
        var next = 0
        node.forEachByte(in: bytes) { byte in
          memory[next] = byte
          next += 1
        }
      }
    }
  }

  /// An integer that fits into 64 bits.
  package func integer() throws(JSONFault) -> Int64 {
    guard node.kind == .number else { throw fault("must be a whole number") }
    let digits = document.text.withUnsafeBytes { String(decoding: $0[node.range], as: UTF8.self) }
    guard let number = Int64(digits) else { throw fault("must be a whole number of 64 bits") }
    return number
  }

  /// True or false.
  package func bool() throws(JSONFault) -> Bool {
    guard node.kind == .true || node.kind == .false else { throw fault("must be true or false") }
    return node.kind == .true
  }

  /// The offset in bytes of the closing bracket of an array in the document, and the number of the array's
  /// elements. `netopt keys` inserts a new key before the bracket.
  package func closing() throws(JSONFault) -> (byte: Int, count: Int) {
    guard node.kind == .array else { throw fault("must be an array") }
    return (node.range.upperBound - 1, node.count)
  }

  /// The value as an array of strings.
  package func strings() throws(JSONFault) -> [String] {
    var strings: [String] = []
    for element in try elements() { strings.append(try element.string()) }
    return strings
  }

  /// Whether the value is a JSON string.
  package var isString: Bool { node.kind == .string }
}
