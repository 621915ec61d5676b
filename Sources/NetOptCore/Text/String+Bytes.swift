// HTTP compares bytes. Swift compares characters: for it a comma with a combining accent is no comma, and the kelvin sign in lower case is "k".
extension StringProtocol {
  /// The text with the letters A to Z in lower case, and nothing else changed.
  package var loweredASCII: String {
    String(decoding: utf8.lazy.map(ByteClass.lowered), as: UTF8.self)
  }

  /// The parts of the text between bytes that are ASCII.
  package func split(byte: UInt8, omittingEmpty: Bool = true) -> [SubSequence]
  where SubSequence == Substring {
    Substring(self).utf8.split(separator: byte, omittingEmptySubsequences: omittingEmpty).map(Substring.init)
  }
}

extension String {
  /// Whether two texts have the same bytes. For `==` they are equal when they are canonically equivalent: "é" is equal to "e" with an accent
  /// behind it, and servers, users and signatures take them for two.
  package func hasSameBytes(as other: String) -> Bool {
    guard utf8.count == other.utf8.count, self == other else { return false }
    // What is equal to ASCII and as long is ASCII, and has no other form. Both counts of such a text are known to it.
    return utf8.count == utf16.count || utf8.elementsEqual(other.utf8)
  }
}
