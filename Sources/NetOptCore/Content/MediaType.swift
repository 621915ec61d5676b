/// Reads parameters of `Content-Type` (RFC 9110, section 8.3).
enum MediaType {
  /// Returns the value of the parameter `charset` in lower case; `nil` if there is none. Cuts a value of more
  /// than 42 characters and adds "…". If several fields are joined by commas, only the first counts.
  static func charset(of field: String) -> String? {
    var parameters: [[UInt8]] = [[]]
    var isQuoted = false
    for byte in field.utf8 {
      if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
      if !isQuoted, byte == UInt8(ascii: ",") { break }
      if !isQuoted, byte == UInt8(ascii: ";") {
        parameters.append([])
      } else {
        parameters[parameters.count - 1].append(byte)
      }
    }
    for parameter in parameters.dropFirst() {
      let parts = parameter.split(separator: UInt8(ascii: "="), maxSplits: 1)
      guard parts.count == 2, trimmed(parts[0]).loweredASCII == "charset" else { continue }
      let value = trimmed(parts[1])
      let isQuoted = value.utf8.count > 1 && value.hasPrefix("\"") && value.hasSuffix("\"")
      let content = (isQuoted ? String(value.dropFirst().dropLast()) : value).printable(42).loweredASCII
      return content.isEmpty ? nil : content
    }
    return nil
  }

  /// Returns a part of a field without the white space around it.
  private static func trimmed(_ part: ArraySlice<UInt8>) -> String {
    String(decoding: ByteClass.trimmed(part), as: UTF8.self)
  }
}
