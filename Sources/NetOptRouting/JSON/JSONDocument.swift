package import NetOptCore

/// A JSON text with an index of its values: where each value is, and which value follows. The document copies
/// nothing from the text until a caller asks for a value.
package struct JSONDocument {
  /// The text in UTF-8.
  let bytes: [UInt8]
  /// The index: one node for each value and each key, in the order of the text. An array or object comes
  /// directly before its contents.
  let nodes: [JSONNode]

  /// The value that spans the whole text.
  package var root: JSONElement { JSONElement(document: self, node: 0) }

  /// Reads a JSON text. Reports duplicate keys, and the position at which the text stops being JSON.
  ///
  /// - Returns: the document, even when it has duplicate keys; `nil` when the text is not JSON to its end.
  package static func read(_ bytes: [UInt8], _ report: inout FaultReport) -> JSONDocument? {
    // Callers compare keys and values as strings. So two keys that are equal as strings are duplicates, even
    // when their bytes differ.
    let outline = bytes.withUnsafeBytes {
      JSONReader.read($0, keys: .sameCharacters, mostDuplicates: FaultReport.limit)
    }
    let document = JSONDocument(bytes: bytes, nodes: outline.nodes)
    for duplicate in outline.duplicates {
      report.add(
        document.path(duplicate.path),
        "this key appears more than once; keep one and remove the others")
    }
    report.count(further: outline.duplicateCount - outline.duplicates.count)
    guard let fault = outline.fault else { return document }
    let before = bytes[..<fault.offset]
    let line = before.count { $0 == 0x0a } + 1
    // Continuation bytes are no characters of their own.
    let column = before.reversed().prefix { $0 != 0x0a }.count { $0 & 0xc0 != 0x80 } + 1
    report.add(document.path(fault.path), "not JSON: line \(line), column \(column): \(fault.rule)")
    return nil
  }

  /// The path to a value, from the steps that lead from the root to the value.
  private func path(_ steps: [JSONStep]) -> JSONPath {
    steps.reduce(JSONPath()) { path, step in
      switch step {
      case .index(let index): path.index(index)
      case .key(let node): path.key(text(of: nodes[node]))
      }
    }
  }

  /// The text of a string or key, with its escapes decoded.
  fileprivate func text(of node: JSONNode) -> String { bytes.withUnsafeBytes { node.text(in: $0) } }
}

/// A value or key of a JSON text: a reference to a node of its document.
package struct JSONElement {
  /// The document that contains the value.
  let document: JSONDocument
  /// The index of the value in the document's `nodes`.
  let node: Int

  /// The node of the value.
  private var value: JSONNode { document.nodes[node] }

  /// The kind of the value.
  package var kind: JSONNode.Kind { value.kind }

  /// The number of elements of an array, or of members of an object; 0 for other values.
  package var count: Int { value.count }

  /// The text of a string or key; `nil` for other values.
  package var text: String? { value.kind == .string ? document.text(of: value) : nil }

  /// The number, when it is a whole number that fits into 64 bits, even if it is written with a fraction or
  /// an exponent (`1.0`, `1e3`); `nil` for all other values.
  package var integer: Int64? {
    guard value.kind == .number else { return nil }
    let digits = document.bytes[value.range]
    if digits.count <= 18, digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) {
      return digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
    let text = String(decoding: digits, as: UTF8.self)
    return Int64(text) ?? Double(text).flatMap { Int64(exactly: $0) }
  }

  /// The bytes of the value in the text. Those of a string have no quotes, and keep their escapes.
  package var bytes: ArraySlice<UInt8> { document.bytes[value.range] }

  /// Calls a closure with each element of an array until it returns false.
  package func forEachElement(_ body: (JSONElement) -> Bool) {
    var child = node + 1
    for _ in 0..<count {
      if !body(JSONElement(document: document, node: child)) { return }
      child = document.nodes[child].next
    }
  }

  /// Calls a closure with each member of an object.
  package func forEachMember(_ body: (_ key: JSONElement, _ value: JSONElement) -> Void) {
    var key = node + 1
    for _ in 0..<count {
      body(JSONElement(document: document, node: key), JSONElement(document: document, node: key + 1))
      key = document.nodes[key + 1].next
    }
  }

  /// Whether this element is a string with exactly this text, such as the key of a member.
  func isKey(_ name: StaticString) -> Bool {
    guard value.isPlain else { return text == name.description }
    let range = value.range
    guard range.count == name.utf8CodeUnitCount else { return false }
    return document.bytes.withUnsafeBufferPointer { bytes in
      // Both texts have the same length, as checked above.
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
