/// Formats fuzz inputs for the messages of failed tests.
enum ShownBytes {
  /// Shows printable ASCII characters as they are, except the backslash. Shows each other byte as `\x` and
  /// two hexadecimal digits.
  static func text(_ bytes: [UInt8]) -> String {
    bytes.map { byte in
      if (0x20..<0x7f).contains(byte), byte != 0x5c { return String(UnicodeScalar(byte)) }
      let digits = String(byte, radix: 16)
      return "\\x\(digits.count < 2 ? "0" : "")\(digits)"
    }.joined()
  }
}
