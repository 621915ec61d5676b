/// Media types in `Content-Type` (RFC 9110, section 8.3).
enum MediaType {
  /// Returns the value of the parameter `charset`, in lower case and at most 40 characters of it; `nil` if
  /// there is none.
  static func charset(of field: String) -> String? {
    for parameter in field.utf8.split(separator: UInt8(ascii: ";")).dropFirst() {
      let parts = parameter.split(separator: UInt8(ascii: "="), maxSplits: 1)
      guard parts.count == 2, trimmed(parts[0]).loweredASCII == "charset" else { continue }
      let value = trimmed(parts[1])
      let isQuoted = value.utf8.count >= 2 && value.utf8.first == 0x22 && value.utf8.last == 0x22
      return (isQuoted ? String(value.dropFirst().dropLast()) : value).printable(40).loweredASCII
    }
    return nil
  }

  /// Returns a part of a field without the white space around it.
  private static func trimmed(_ part: Substring.UTF8View) -> String {
    let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    let start = part.drop(while: isBlank)
    let end = start.lastIndex { !isBlank($0) }.map { start.index(after: $0) } ?? start.startIndex
    return String(decoding: start[..<end], as: UTF8.self)
  }
}
