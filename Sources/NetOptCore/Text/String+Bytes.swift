// HTTP compares bytes, but Swift compares characters. In Swift a comma with a combining accent is not a
// comma, and the lower case of the kelvin sign is "k".
extension StringProtocol {
  /// The text with the letters A to Z converted to lower case and all other characters unchanged.
  package var loweredASCII: String {
    // A loop over the bytes, because a lazy map over a generic text takes some 200 ns for each byte.
    var text = String(self)
    return text.withUTF8 { bytes in
      String(unsafeUninitializedCapacity: bytes.count) { lowered in
        for index in bytes.indices {
          lowered.initializeElement(at: index, to: ByteClass.lowered(bytes[index]))
        }
        return bytes.count
      }
    }
  }

  /// Splits the text at each occurrence of an ASCII byte.
  package func split(byte: UInt8, omittingEmpty: Bool = true) -> [SubSequence]
  where SubSequence == Substring {
    Substring(self).utf8.split(separator: byte, omittingEmptySubsequences: omittingEmpty).map(Substring.init)
  }
}

extension String {
  /// Whether two texts have the same bytes. The operator `==` is also true for canonically equivalent texts,
  /// such as "é" and "e" with a combining accent. Servers, users and signatures distinguish such texts.
  package func hasSameBytes(as other: String) -> Bool {
    guard utf8.count == other.utf8.count, self == other else { return false }
    // Equal UTF-8 and UTF-16 counts mean that the text is ASCII. An equivalent text of the same length is
    // then ASCII too and has the same bytes. A `String` knows both counts of an ASCII text without reading
    // it.
    return utf8.count == utf16.count || utf8.elementsEqual(other.utf8)
  }
}
