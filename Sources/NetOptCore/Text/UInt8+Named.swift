extension UInt8 {
  /// The name of the byte in a message about a wrong byte, such as `the character :` or `the byte 0x80`.
  package var named: String {
    switch self {
    case 0: "a NUL"
    case 0x09: "a tab"
    case 0x0a: "a line feed (LF)"
    case 0x0d: "a carriage return (CR)"
    case 0x20: "a space"
    case 0x21...0x7e: "the character \(Character(UnicodeScalar(self)))"
    default: "the byte 0x\(Hex.text([self]))"
    }
  }
}
