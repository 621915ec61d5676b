package import NetOptCrypto

/// A JSON text (RFC 8259) that was read. The text is wiped when nothing refers to it any more: a key ring has secrets
/// in it, which must not stay behind in the strings of a decoder. Numbers keep their digits, members their order.
package final class JSONDocument: Sendable {
  /// A value, by its place in the text.
  indirect enum Node: Sendable {
    case null
    case bool(Bool)
    case number(Range<Int>)
    /// What is between the quotes.
    case string(Range<Int>)
    /// Its elements, and where its bracket closes.
    case array([Node], end: Int)
    case object([(name: String, value: Node)])
  }

  let text: SecretBytes
  let node: Node

  private init(_ text: SecretBytes, _ node: Node) {
    self.text = text
    self.node = node
  }

  /// Reads a text.
  ///
  /// - Parameter text: UTF-8. It is referred to, not copied.
  /// - Throws: `JSONFault` with the byte at which it breaks a rule. Two members with one name break one too.
  package static func read(_ text: SecretBytes) throws(JSONFault) -> JSONPart {
    let node = try text.withUnsafeBytes { (bytes) throws(JSONFault) in
      var parser = JSONParser(bytes)
      return try parser.document()
    }
    return JSONPart(document: JSONDocument(text, node), node: node, path: "$")
  }
}

/// What a JSON text breaks, and where. Never has a part of the text in it but names of members.
package struct JSONFault: Error, Hashable, Sendable {
  /// The place: `byte 12`, `$.keys[0].id`.
  package let place: String
  /// The rule.
  package let rule: String
}

/// A value of a document.
package struct JSONPart: Sendable {
  let document: JSONDocument
  let node: JSONDocument.Node
  /// Where it is: `$.keys[0].id`.
  package let path: String

  /// A fault at this place.
  package func fault(_ rule: String) -> JSONFault { JSONFault(place: path, rule: rule) }

  /// The members of an object.
  package func members() throws(JSONFault) -> [(name: String, value: JSONPart)] {
    guard case .object(let members) = node else { throw fault("has to be an object") }
    return members.map {
      ($0.name, JSONPart(document: document, node: $0.value, path: "\(path).\($0.name)"))
    }
  }

  /// A member of an object; `nil` when it is not there or null.
  package func member(_ name: String) throws(JSONFault) -> JSONPart? {
    guard case .object(let members) = node else { throw fault("has to be an object") }
    let member = members.first { $0.name.utf8.elementsEqual(name.utf8) }
    guard let value = member?.value else { return nil }
    if case .null = value { return nil }
    return JSONPart(document: document, node: value, path: "\(path).\(name)")
  }

  /// A member that has to be there.
  package func required(_ name: String) throws(JSONFault) -> JSONPart {
    guard let member = try member(name) else { throw fault("has no \(name)") }
    return member
  }

  /// The elements of an array.
  package func elements() throws(JSONFault) -> [JSONPart] {
    guard case .array(let elements, _) = node else { throw fault("has to be an array") }
    return elements.enumerated().map {
      JSONPart(document: document, node: $0.element, path: "\(path)[\($0.offset)]")
    }
  }

  /// A text.
  package func string() throws(JSONFault) -> String {
    guard case .string(let range) = node else { throw fault("has to be a text") }
    return document.text.withUnsafeBytes { bytes in
      String(decoding: JSONParser.unescaped(bytes[range]), as: UTF8.self)
    }
  }

  /// A text that nobody else is to see.
  package func secret() throws(JSONFault) -> SecretBytes {
    guard case .string(let range) = node else { throw fault("has to be a text") }
    return document.text.withUnsafeBytes { bytes in
      var count = 0
      JSONParser.unescape(bytes[range]) { _ in count += 1 }
      return SecretBytes(count: count) { memory in
        var next = 0
        JSONParser.unescape(bytes[range]) { byte in
          memory[next] = byte
          next += 1
        }
      }
    }
  }

  /// A whole number.
  package func integer() throws(JSONFault) -> Int64 {
    guard case .number(let range) = node else { throw fault("has to be a whole number") }
    let digits = document.text.withUnsafeBytes { String(decoding: $0[range], as: UTF8.self) }
    guard let number = Int64(digits) else { throw fault("has to be a whole number of 64 bits") }
    return number
  }

  /// True or false.
  package func bool() throws(JSONFault) -> Bool {
    guard case .bool(let value) = node else { throw fault("has to be true or false") }
    return value
  }

  /// Where the bracket of an array closes, and how many elements are before it.
  package func closing() throws(JSONFault) -> (byte: Int, count: Int) {
    guard case .array(let elements, let end) = node else { throw fault("has to be an array") }
    return (end, elements.count)
  }

  /// Texts.
  package func strings() throws(JSONFault) -> [String] {
    var strings: [String] = []
    for element in try elements() { strings.append(try element.string()) }
    return strings
  }

  /// Whether it is a text.
  package var isString: Bool { if case .string = node { true } else { false } }
}
