/// Percent-encoding (RFC 3986, section 2.1). The default style is the canonical form for signatures.
@usableFromInline package enum PercentEncoding {
  /// How bytes are encoded. `plain` is the canonical form. Some signature schemes use `form`, `none` or
  /// `twice`. The verifier also uses the styles to find the mistake that explains a wrong signature.
  @usableFromInline package struct Style: OptionSet, Sendable {
    @usableFromInline package let rawValue: Int

    /// Creates a style from its bits.
    @inlinable package init(rawValue: Int) { self.rawValue = rawValue }

    /// Keeps unreserved bytes (letters, digits and -._~) and encodes all others as `%XX`.
    @usableFromInline package static let plain: Style = []
    /// Writes hexadecimal digits in lower case.
    @usableFromInline package static let lowerHex = Style(rawValue: 1)
    /// Writes a space as "+".
    @usableFromInline package static let plusForSpace = Style(rawValue: 2)
    /// Encodes the result once more: `%XX` becomes `%25XX`.
    @usableFromInline package static let twice = Style(rawValue: 4)
    /// Like `plain`, but keeps "*" and encodes "~", as HTML forms do.
    @usableFromInline package static let form = Style(rawValue: 8)
    /// Encodes nothing.
    @usableFromInline package static let none = Style(rawValue: 16)
  }

  /// Encodes bytes and appends them to `out`.
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

  /// Returns the offset in bytes of the first "%" that two hexadecimal digits do not follow; `nil` if there
  /// is none.
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

  /// Decodes every `%XX` once. A "%" that two hexadecimal digits do not follow stays.
  ///
  /// - Parameter plus: whether "+" stands for a space, as in HTML forms.
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
