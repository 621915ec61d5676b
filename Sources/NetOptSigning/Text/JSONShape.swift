import NetOptCore

/// The forms in which different programs write one JSON text: with or without white space, with members in
/// any order or sorted. Only the diagnosis of signatures uses these forms: a signer may have signed the body
/// in another form than it sent. String and number values stay as they were written; member names are decoded
/// and escaped again.
enum JSONShape: CaseIterable {
  /// No white space; members in the order of the text.
  case compact
  /// No white space; members sorted by name at each level.
  case sorted
  /// A space after each colon and comma; members in the order of the text. This is the default of Python's
  /// `json.dumps`.
  case spaced
  /// A space after each colon and comma; members sorted by name at each level.
  case sortedAndSpaced

  private var isSpaced: Bool { self == .spaced || self == .sortedAndSpaced }
  private var isSorted: Bool { self == .sorted || self == .sortedAndSpaced }

  /// Returns the text in this form; `nil` if the text is not JSON or an object has two members with the same
  /// name.
  func applied(to text: [UInt8]) -> [UInt8]? {
    text.withUnsafeBytes { bytes in
      let outline = JSONReader.read(bytes, keys: .sameBytes, mostDuplicates: 0)
      guard outline.fault == nil, outline.duplicateCount == 0 else { return nil }
      var out: [UInt8] = []
      out.reserveCapacity(bytes.count)
      append(0, of: outline.nodes, bytes, to: &out)
      return out
    }
  }

  /// Appends the value whose node is at `index` in `nodes`, in this form. The recursion is at most
  /// `JSONReader.deepest` levels deep, because the reader refuses deeper texts.
  private func append(
    _ index: Int, of nodes: [JSONNode], _ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]
  ) {
    let node = nodes[index]
    switch node.kind {
    case .null, .true, .false, .number: out += bytes[node.range]
    case .string:
      out.append(0x22)
      out += bytes[node.range]
      out.append(0x22)
    case .array:
      out.append(0x5b)
      var element = index + 1
      for position in 0..<node.count {
        if position > 0 { separate(0x2c, &out) }
        append(element, of: nodes, bytes, to: &out)
        element = nodes[element].next
      }
      out.append(0x5d)
    case .object:
      out.append(0x7b)
      for (position, member) in members(of: index, nodes, bytes).enumerated() {
        if position > 0 { separate(0x2c, &out) }
        out += JSONValue.string(member.name).bytes()
        separate(0x3a, &out)
        append(member.value, of: nodes, bytes, to: &out)
      }
      out.append(0x7d)
    }
  }

  /// The members of an object in the order of this form: their names, and the indices of their values in
  /// `nodes`.
  private func members(
    of object: Int, _ nodes: [JSONNode], _ bytes: UnsafeRawBufferPointer
  ) -> [(name: String, value: Int)] {
    var key = object + 1
    let members = (0..<nodes[object].count).map { _ in
      defer { key = nodes[key + 1].next }
      return (name: nodes[key].text(in: bytes), value: key + 1)
    }
    return isSorted ? members.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) } : members
  }

  /// Appends a comma or colon, and a space if this form has spaces.
  private func separate(_ byte: UInt8, _ out: inout [UInt8]) {
    out.append(byte)
    if isSpaced { out.append(0x20) }
  }
}
