/// Formats inputs for messages.
enum ShownBytes {
  /// Prints ASCII as it is, except the backslash, and other bytes as `\x` and two digits.
  static func text(_ bytes: [UInt8]) -> String {
    bytes.map { byte in
      if (0x20..<0x7f).contains(byte), byte != 0x5c { return String(UnicodeScalar(byte)) }
      let digits = String(byte, radix: 16)
      return "\\x\(digits.count < 2 ? "0" : "")\(digits)"
    }.joined()
  }
}
