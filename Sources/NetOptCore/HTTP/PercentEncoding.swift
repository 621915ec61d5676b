/// Percent-encoding (RFC 3986, section 2.1) in the one form that is signed.
@usableFromInline package enum PercentEncoding {
  /// How bytes are written. Everything but `plain` is a mistake that other implementations make.
  @usableFromInline package struct Style: OptionSet, Sendable {
    @usableFromInline package let rawValue: Int

    /// Makes a style of its bits.
    @inlinable package init(rawValue: Int) { self.rawValue = rawValue }

    /// Unreserved bytes as they are, every other as `%XX`.
    @usableFromInline package static let plain: Style = []
    /// Hexadecimal digits in lower case.
    @usableFromInline package static let lowerHex = Style(rawValue: 1)
    /// A space as "+".
    @usableFromInline package static let plusForSpace = Style(rawValue: 2)
    /// Encoded, and then encoded once more.
    @usableFromInline package static let twice = Style(rawValue: 4)
    /// "*" is left as it is and "~" is encoded: the form of HTML's forms.
    @usableFromInline package static let form = Style(rawValue: 8)
    /// Not at all.
    @usableFromInline package static let none = Style(rawValue: 16)
  }

  /// Appends bytes in encoded form.
  @inlinable
  package static func append(
    _ bytes: some Sequence<UInt8>, to out: inout [UInt8], _ style: Style = .plain
  ) {
    if style.contains(.none) {
      out += bytes
      return
    }
    let digits = style.contains(.lowerHex) ? Hex.lower : Hex.upper
    for byte in bytes {
      var isKept = ByteClass.isUnreserved(byte)
      if style.contains(.form), byte == 0x2a || byte == 0x7e { isKept = byte == 0x2a }
      if isKept {
        out.append(byte)
      } else if byte == 0x20, style.contains(.plusForSpace) {
        out.append(0x2b)
      } else {
        out.append(0x25)
        if style.contains(.twice) {
          out.append(0x32)
          out.append(0x35)
        }
        out.append(digits[Int(byte >> 4)])
        out.append(digits[Int(byte & 15)])
      }
    }
  }

  /// The place of the first "%" that no two hexadecimal digits follow, from 0; `nil` when there is none.
  package static func fault(in text: String) -> Int? {
    var text = text
    return text.withUTF8 { bytes in
      bytes.indices.first { index in
        guard bytes[index] == 0x25 else { return false }
        return index + 2 >= bytes.count || Hex.digit(bytes[index + 1]) == nil
          || Hex.digit(bytes[index + 2]) == nil
      }
    }
  }

  /// The bytes with every `%XX` decoded once. A "%" that no two digits follow stays as it is.
  ///
  /// - Parameter plus: whether "+" is a space, as in forms.
  @inlinable
  package static func decoded(_ text: some Collection<UInt8>, plus: Bool = false) -> [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(text.count)
    var index = text.startIndex
    while index != text.endIndex {
      let byte = text[index]
      text.formIndex(after: &index)
      if byte == 0x25, let next = text.index(index, offsetBy: 2, limitedBy: text.endIndex),
        let high = Hex.digit(text[index]), let low = Hex.digit(text[text.index(after: index)])
      {
        out.append(high << 4 | low)
        index = next
      } else {
        out.append(plus && byte == 0x2b ? 0x20 : byte)
      }
    }
    return out
  }
}
