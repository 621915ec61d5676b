/// Base64 (RFC 4648), read strictly. `decode` refuses line ends, missing padding, and unused bits that are
/// not 0.
package enum Base64 {
  /// The alphabets of RFC 4648.
  package enum Alphabet: Sendable {
    /// The alphabet of section 4, with "+" and "/". Padding with "=" is required.
    case standard
    /// The alphabet of section 5 for URLs and file names, with "-" and "_". There is no padding.
    case url

    /// The 64 characters of the alphabet, in the order of their values.
    fileprivate var digits: [UInt8] { self == .standard ? Base64.standard : Base64.forURLs }
  }

  /// The 62 characters that both alphabets share, in the order of their values.
  private static let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
  /// The 64 characters of the alphabet `standard`, in the order of their values.
  private static let standard = Array((letters + "+/").utf8)
  /// The 64 characters of the alphabet `url`, in the order of their values.
  static var urlDigits: [UInt8] { forURLs }
  /// The array that `urlDigits` returns.
  private static let forURLs = Array((letters + "-_").utf8)

  /// Encodes bytes as ASCII.
  package static func encode(_ bytes: [UInt8], _ alphabet: Alphabet = .standard) -> [UInt8] {
    let digits = alphabet.digits
    var out: [UInt8] = []
    out.reserveCapacity((bytes.count + 2) / 3 * 4)
    var index = 0
    while index < bytes.count {
      let rest = min(3, bytes.count - index)
      let a = bytes[index]
      let b = rest > 1 ? bytes[index + 1] : 0
      let c = rest > 2 ? bytes[index + 2] : 0
      out.append(digits[Int(a >> 2)])
      out.append(digits[Int(a & 3) << 4 | Int(b >> 4)])
      if rest > 1 { out.append(digits[Int(b & 15) << 2 | Int(c >> 6)]) }
      if rest > 2 { out.append(digits[Int(c & 63)]) }
      if rest < 3, alphabet == .standard { out += repeatElement(0x3d, count: 3 - rest) }
      index += 3
    }
    return out
  }

  /// Encodes bytes as a string.
  package static func text(_ bytes: [UInt8], _ alphabet: Alphabet = .standard) -> String {
    String(decoding: encode(bytes, alphabet), as: UTF8.self)
  }

  /// Decodes a text. Returns `nil` for a text that `encode` never returns.
  package static func decode(_ text: some Collection<UInt8>, _ alphabet: Alphabet = .standard) -> [UInt8]? {
    var digits = text[...]
    if alphabet == .standard {
      guard text.count % 4 == 0 else { return nil }
      let pads = text.suffix(2).count { $0 == 0x3d }
      digits = text.dropLast(pads)
    }
    guard digits.count % 4 != 1 else { return nil }
    var out: [UInt8] = []
    out.reserveCapacity(digits.count * 3 / 4)
    var bits: UInt32 = 0
    var count: UInt32 = 0
    for byte in digits {
      guard let value = value(byte, alphabet) else { return nil }
      bits = bits << 6 | value
      count += 6
      if count >= 8 {
        count -= 8
        out.append(UInt8(truncatingIfNeeded: bits >> count))
        bits &= (1 << count) - 1
      }
    }
    return bits == 0 ? out : nil
  }

  /// The value of a character, 0 to 63; `nil` if the alphabet does not have the character.
  private static func value(_ byte: UInt8, _ alphabet: Alphabet) -> UInt32? {
    switch (byte, alphabet) {
    case (0x41...0x5a, _): UInt32(byte) - 0x41
    case (0x61...0x7a, _): UInt32(byte) - 0x61 + 26
    case (0x30...0x39, _): UInt32(byte) - 0x30 + 52
    case (0x2b, .standard), (0x2d, .url): 62
    case (0x2f, .standard), (0x5f, .url): 63
    default: nil
    }
  }
}
