/// The Huffman code of HPACK (RFC 7541, appendix B).
enum HuffmanCode {
  /// The lengths of the codes in bits: of the 256 byte values in order, and then of the end-of-string symbol.
  /// The codes are canonical, so the lengths determine them (RFC 7541, appendix B).
  private static let lengths: [Int] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
  ]

  /// The symbol of each code: a byte value, or 256 for the end of the string.
  private static let symbols: [Code: Int] = {
    var symbols: [Code: Int] = [:]
    var code = Code(length: 0, bits: 0)
    for length in 5...30 {
      code = Code(length: length, bits: code.bits << (length - code.length))
      for symbol in lengths.indices where lengths[symbol] == length {
        symbols[code] = symbol
        code.bits += 1
      }
    }
    return symbols
  }()

  /// A code: the low `length` bits of `bits`.
  private struct Code: Hashable {
    var length: Int
    var bits: Int
  }

  /// Decodes a string; returns `nil` when it is invalid.
  static func decoded(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
    var text: [UInt8] = []
    var code = Code(length: 0, bits: 0)
    for byte in bytes {
      for bit in (0..<8).reversed() {
        code = Code(length: code.length + 1, bits: code.bits << 1 | Int(byte >> UInt8(bit) & 1))
        guard code.length <= 30 else { return nil }
        guard let symbol = symbols[code] else { continue }
        // Section 5.2: a string that contains the end-of-string symbol is invalid.
        guard let byte = UInt8(exactly: symbol) else { return nil }
        text.append(byte)
        code = Code(length: 0, bits: 0)
      }
    }
    // After the last symbol, the rest of the byte (fewer than 8 bits) is filled with the first bits of the
    // end-of-string code, which are all 1.
    return code.length < 8 && code.bits == (1 << code.length) - 1 ? text : nil
  }
}
