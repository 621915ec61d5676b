// The text of a string node. `bytes` must be the JSON text from which the reader made the node. The functions
// do not check it: the reader has checked that the range lies within the text and that the escapes are valid.

extension JSONNode {
  /// Returns the text of a string node, with its escapes decoded.
  package func text(in bytes: UnsafeRawBufferPointer) -> String {
    let raw = UnsafeRawBufferPointer(rebasing: bytes[range])
    if isPlain { return String(decoding: raw, as: UTF8.self) }
    // The text without escapes is never longer: each escape has more bytes than the character that it
    // encodes.
    return String(unsafeUninitializedCapacity: raw.count) { room in
      var count = 0
      Self.unescape(raw) { byte in
        room[count] = byte
        count += 1
      }
      return count
    }
  }

  /// Calls `body` with each UTF-8 byte of the text of a string node. For secrets, which must not be copied
  /// into a `String`.
  package func forEachByte(in bytes: UnsafeRawBufferPointer, _ body: (UInt8) -> Void) {
    Self.unescape(UnsafeRawBufferPointer(rebasing: bytes[range]), body)
  }

  /// Whether the text of a string node equals `text` byte for byte.
  package func isText(_ text: String, in bytes: UnsafeRawBufferPointer) -> Bool {
    let raw = bytes[range]
    if isPlain { return raw.count == text.utf8.count && raw.elementsEqual(text.utf8) }
    var rest = text.utf8[...]
    var isSame = true
    forEachByte(in: bytes) { byte in isSame = isSame && rest.popFirst() == byte }
    return isSame && rest.isEmpty
  }

  /// Decodes the escapes of a string, and calls `take` with each UTF-8 byte of the result.
  ///
  /// - Parameter raw: the bytes between the quotes.
  private static func unescape(_ raw: UnsafeRawBufferPointer, _ take: (UInt8) -> Void) {
    var index = 0
    /// Reads the four hexadecimal digits of an escape: one UTF-16 code unit.
    func unit() -> UInt32 {
      defer { index += 4 }
      return raw[index..<(index + 4)].reduce(0) { $0 << 4 | UInt32(Hex.digit($1) ?? 0) }
    }
    while index < raw.count {
      let byte = raw[index]
      index += 1
      guard byte == UInt8(ascii: "\\") else {
        take(byte)
        continue
      }
      let escape = raw[index]
      index += 1
      switch escape {
      case UInt8(ascii: "b"): take(0x08)
      case UInt8(ascii: "f"): take(0x0c)
      case UInt8(ascii: "n"): take(0x0a)
      case UInt8(ascii: "r"): take(0x0d)
      case UInt8(ascii: "t"): take(0x09)
      case UInt8(ascii: "u"):
        var value = unit()
        if (0xd800..<0xdc00).contains(value) {
          index += 2
          value = 0x10000 + (value - 0xd800) << 10 + (unit() - 0xdc00)
        }
        guard let scalar = Unicode.Scalar(value) else { continue }
        for byte in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter { take(byte) }
      default: take(escape)
      }
    }
  }
}
