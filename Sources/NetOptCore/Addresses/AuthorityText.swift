/// Hosts and ports as messages may show them. Where they are wrongly written, what stands in their place may be a password: of
/// `https://u:p%40h/` nothing says where it ends.
package enum AuthorityText {
  /// The text when it is a host with or without a port and nothing else, otherwise "…". A port has at most five digits here, so that
  /// one that is too great is shown.
  package static func shown(_ text: some StringProtocol) -> String {
    isPlain(Array(text.utf8)[...]) ? String(text) : "…"
  }

  private static func isPlain(_ text: ArraySlice<UInt8>) -> Bool {
    if text.first == UInt8(ascii: "[") {
      guard let close = text.firstIndex(of: UInt8(ascii: "]")) else { return false }
      return text[..<close].dropFirst().allSatisfy(isOfAddress) && isPort(text[close...].dropFirst())
    }
    let host = text.prefix { $0 != UInt8(ascii: ":") }
    if host.allSatisfy(isOfName), isPort(text[host.endIndex...]) { return true }
    // An IPv6 address without brackets.
    return IPAddress(String(decoding: text, as: UTF8.self)) != nil
  }

  /// Whether a byte may be of a name, one that is not written in ASCII included.
  private static func isOfName(_ byte: UInt8) -> Bool {
    ByteClass.isUnreserved(byte) && byte != UInt8(ascii: "~") || byte >= 0x80
  }

  private static func isOfAddress(_ byte: UInt8) -> Bool {
    Hex.digit(byte) != nil || byte == UInt8(ascii: ":") || byte == UInt8(ascii: ".")
  }

  private static func isPort(_ text: ArraySlice<UInt8>) -> Bool {
    guard let colon = text.first else { return true }
    return colon == UInt8(ascii: ":") && text.count <= 6 && text.dropFirst().allSatisfy(ByteClass.isDigit)
  }
}
