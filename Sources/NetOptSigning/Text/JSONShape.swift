import NetOptCore
import NetOptCrypto

/// The forms in which one JSON text is written by different programs. Only for finding out what a signer did: texts
/// and numbers stay as they were written.
enum JSONShape: CaseIterable {
  /// Without white space.
  case compact
  /// Members sorted by their names at each level, without white space.
  case sorted
  /// A space behind each colon and comma: the default of Python's `json.dumps`.
  case spaced
  /// Sorted and spaced.
  case sortedAndSpaced

  private var isSpaced: Bool { self == .spaced || self == .sortedAndSpaced }
  private var isSorted: Bool { self == .sorted || self == .sortedAndSpaced }

  /// The text in this form; `nil` when it is no JSON.
  func applied(to text: [UInt8]) -> [UInt8]? {
    let secret = SecretBytes(copying: text)
    guard let part = try? JSONDocument.read(secret) else { return nil }
    var out: [UInt8] = []
    out.reserveCapacity(text.count)
    append(part.node, text, to: &out)
    return out
  }

  private func append(_ node: JSONDocument.Node, _ text: [UInt8], to out: inout [UInt8]) {
    switch node {
    case .null: out.append(text: "null")
    case .bool(let value): out.append(text: value ? "true" : "false")
    case .number(let range): out += text[range]
    case .string(let range):
      out.append(0x22)
      out += text[range]
      out.append(0x22)
    case .array(let elements, _):
      out.append(0x5b)
      for (index, element) in elements.enumerated() {
        if index > 0 { separate(0x2c, &out) }
        append(element, text, to: &out)
      }
      out.append(0x5d)
    case .object(let members):
      out.append(0x7b)
      let members =
        isSorted ? members.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) } : members
      for (index, member) in members.enumerated() {
        if index > 0 { separate(0x2c, &out) }
        out += JSONValue.string(member.name).bytes()
        separate(0x3a, &out)
        append(member.value, text, to: &out)
      }
      out.append(0x7d)
    }
  }

  private func separate(_ byte: UInt8, _ out: inout [UInt8]) {
    out.append(byte)
    if isSpaced { out.append(0x20) }
  }
}
