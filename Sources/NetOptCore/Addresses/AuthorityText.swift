/// Formats the host and port of a URL for messages. Text that is not a correct host and port may contain a
/// password: in `https://u:p%40h/`, `u` is a user name and `p` is a password, but no "@" shows where the
/// password ends.
package enum AuthorityText {
  /// Returns the text if it is a host with or without a port, and nothing else; otherwise "…". A port may
  /// have up to five digits, so that a message about a port above 65535 can show it.
  package static func shown(_ text: some StringProtocol) -> String {
    isPlain(Array(text.utf8)[...]) ? String(text) : "…"
  }

  /// Whether the text is a host with or without a port, and nothing else.
  private static func isPlain(_ text: ArraySlice<UInt8>) -> Bool {
    if text.first == UInt8(ascii: "[") {
      guard let close = text.firstIndex(of: UInt8(ascii: "]")) else { return false }
      return text[..<close].dropFirst().allSatisfy(isOfAddress) && isPort(text[close...].dropFirst())
    }
    let host = text.prefix { $0 != UInt8(ascii: ":") }
    if host.allSatisfy(isOfName), isPort(text[host.endIndex...]) { return true }
    // The text may be an IPv6 address without brackets.
    return IPAddress(String(decoding: text, as: UTF8.self)) != nil
  }

  /// Whether a byte may occur in a host name, including a name that is not ASCII.
  private static func isOfName(_ byte: UInt8) -> Bool {
    ByteClass.isUnreserved(byte) && byte != UInt8(ascii: "~") || byte >= 0x80
  }

  /// Whether a byte may occur between the brackets of an IPv6 address.
  private static func isOfAddress(_ byte: UInt8) -> Bool {
    Hex.digit(byte) != nil || byte == UInt8(ascii: ":") || byte == UInt8(ascii: ".")
  }

  /// Whether a text is empty, or a colon with at most five digits.
  private static func isPort(_ text: ArraySlice<UInt8>) -> Bool {
    guard let colon = text.first else { return true }
    return colon == UInt8(ascii: ":") && text.count <= 6 && text.dropFirst().allSatisfy(ByteClass.isDigit)
  }
}
