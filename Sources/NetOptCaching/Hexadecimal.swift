/// Bytes as digits.
enum Hexadecimal {
  /// Two small digits for each byte.
  static func text(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
