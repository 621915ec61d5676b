import Foundation
import NetOptCore
import Testing

/// Compares `JSONReader` with the readers of Foundation, JSONDecoder and JSONSerialization, on random texts.
@Suite struct JSONReaderPeerTests {
  /// Reads a text with `JSONReader`.
  private func read(_ bytes: [UInt8], keys: JSONReader.KeyRule = .sameCharacters) -> JSONOutline {
    bytes.withUnsafeBytes { JSONReader.read($0, keys: keys, mostDuplicates: 100) }
  }

  /// Whether JSONDecoder accepts the bytes as a JSON text.
  private func isJSONForTheDecoder(_ bytes: [UInt8]) -> Bool {
    (try? JSONDecoder().decode(Anything.self, from: Data(bytes))) != nil
  }

  @Test("the reader survives random bytes and accepts no text that JSONDecoder refuses")
  func randomBytes() {
    var random = SplitMix64(seed: 7)
    let alphabet = Array("{}[]\":,\\u00ad8tfn-1.e \n\u{0}é".utf8) + [0xff, 0xc0, 0x80]
    var valid = 0
    for _ in 0..<20_000 {
      let length = Int.random(in: 0...40, using: &random)
      let bytes = (0..<length).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] }
      guard read(bytes).fault == nil else { continue }
      valid += 1
      // The decoder accepts every text that the reader accepts.
      #expect(isJSONForTheDecoder(bytes), "\(bytes)")
    }
    #expect(valid > 0)
  }

  @Test("the reader gives the same values as JSONSerialization for generated texts")
  func generatedTexts() throws {
    var random = SplitMix64(seed: 5)
    for _ in 0..<500 {
      let bytes = Array(Self.value(depth: 0, &random).bytes(indented: Bool.random(using: &random)))
      let outline = read(bytes, keys: .sameBytes)
      try #require(outline.fault == nil)
      let decoded = try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
      bytes.withUnsafeBytes { bytes in
        var tree = Tree(nodes: outline.nodes, bytes: bytes)
        #expect(tree.isSame(as: decoded) && tree.next == outline.nodes.count)
      }
    }
  }

  /// The texts are random JSON with one to three random changes, after which a text may be valid or invalid.
  @Test("the reader accepts no mutated text that JSONDecoder refuses")
  func mutatedTexts() {
    var random = SplitMix64(seed: 13)
    let pieces = "{ } [ ] , : \" \\ \\u0000 \\ud83d null true 1e9 -1 0 é".split(separator: " ").map {
      Array($0.utf8)
    }
    var (taken, refused) = (0, 0)
    for _ in 0..<5000 {
      var bytes = Array(Self.value(depth: 0, &random).bytes(indented: Bool.random(using: &random)))
      for _ in 0...Int.random(in: 0...2, using: &random) where !bytes.isEmpty {
        let start = Int.random(in: 0..<bytes.count, using: &random)
        let end = min(bytes.count, start + Int.random(in: 0...4, using: &random))
        switch Int.random(in: 0...3, using: &random) {
        case 0: bytes.removeSubrange(start..<end)
        case 1: bytes[start] = UInt8.random(in: 0...255, using: &random)
        case 2: bytes.insert(contentsOf: pieces[Int.random(in: 0..<pieces.count, using: &random)], at: start)
        default: bytes.append(contentsOf: bytes[start..<end])
        }
      }
      guard read(bytes, keys: .sameBytes).fault == nil else {
        refused += 1
        continue
      }
      taken += 1
      #expect(isJSONForTheDecoder(bytes), "\(String(decoding: bytes, as: UTF8.self))")
    }
    #expect(taken > 100 && refused > 100)
  }

  @Test("the reader treats a key with escapes as the same key without escapes")
  func escapedKeys() throws {
    var random = SplitMix64(seed: 11)
    let pieces = [
      "a", "\\n", "\\\"", "\\\\", "\\/", "\\u0041", "\\u00E9", "\\u20ac", "\\ud83d\\ude00", "é", "😀",
    ]
    for _ in 0..<500 {
      let count = Int.random(in: 0...6, using: &random)
      let key = (0..<count).map { _ in pieces[Int.random(in: 0..<pieces.count, using: &random)] }.joined()
      let decoded = try JSONDecoder().decode(String.self, from: Data("\"\(key)\"".utf8))
      let plain = String(decoding: try JSONEncoder().encode(decoded), as: UTF8.self)
      for keys in [JSONReader.KeyRule.sameCharacters, .sameBytes] {
        #expect(read(Array("{\"\(key)\": 1, \(plain): 2}".utf8), keys: keys).duplicateCount == 1)
        let other = read(Array("{\"\(key)\": 1, \(plain.dropLast())x\": 2}".utf8), keys: keys)
        #expect(other.fault == nil && other.duplicateCount == 0)
      }
    }
  }

  /// Returns a random JSON value. Values of depth 5 and more are neither arrays nor objects.
  private static func value(depth: Int, _ random: inout SplitMix64) -> JSONValue {
    let texts = ["", "a", "é", "e\u{301}", "😀", "\n\u{0}\"\\", "日本語 text", "\u{202e}"]
    switch Int.random(in: 0..<(depth < 5 ? 8 : 5), using: &random) {
    case 0: return .null
    case 1: return .bool(Bool.random(using: &random))
    case 2: return .integer(Int64.random(in: -(1 << 53)...(1 << 53), using: &random))
    case 3: return .number(Double.random(in: -1e6...1e6, using: &random))
    case 4: return .string(texts[Int.random(in: 0..<texts.count, using: &random)])
    case 5, 6:
      let count = Int.random(in: 0...4, using: &random)
      return .array((0..<count).map { _ in value(depth: depth + 1, &random) })
    default:
      var object: JSONValue = [:]
      for index in 0..<Int.random(in: 0...20, using: &random) {
        object.append("\(texts[index % texts.count])\(index)", value(depth: depth + 4, &random))
      }
      return object
    }
  }

  /// A walk through the nodes of a text, in the order of `JSONOutline.nodes`, which compares them with the
  /// values from JSONSerialization.
  private struct Tree {
    /// The nodes that the reader found.
    let nodes: [JSONNode]
    /// The text.
    let bytes: UnsafeRawBufferPointer
    /// The index of the first node that was not compared yet.
    var next = 0

    /// Whether the node at `next`, with its contents, is this value of JSONSerialization. If so, moves `next`
    /// past the node and its contents.
    mutating func isSame(as value: Any) -> Bool {
      let node = nodes[next]
      let start = next
      next += 1
      switch node.kind {
      case .null: return value is NSNull
      case .true, .false: return value as? Bool == (node.kind == .true)
      case .number:
        let text = String(decoding: bytes[node.range], as: UTF8.self)
        // JSONSerialization keeps some numbers as decimals, whose double value is wrong in the last bit.
        if let decimal = value as? NSDecimalNumber { return decimal.decimalValue == Decimal(string: text) }
        return (value as? NSNumber)?.doubleValue == Double(text)
      case .string: return value as? String == node.text(in: bytes)
      case .array:
        guard let values = value as? [Any], values.count == node.count else { return false }
        for value in values { if !isSame(as: value) { return false } }
      case .object:
        guard let members = value as? [String: Any], members.count == node.count else { return false }
        for _ in members {
          let name = nodes[next].text(in: bytes)
          next += 1
          guard let value = members[name], isSame(as: value) else { return false }
        }
      }
      return nodes[start].next == next
    }
  }

  /// A type that JSONDecoder decodes from every JSON value, so decoding fails only if the text is not JSON.
  private struct Anything: Decodable {
    init(from decoder: any Decoder) throws {}
  }
}
