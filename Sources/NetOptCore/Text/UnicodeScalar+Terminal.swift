extension Unicode.Scalar {
  /// Whether the scalar may do more in a terminal than draw a character: act as a control character
  /// (ECMA-48), or change the direction of writing so that a name looks like another name.
  package var steersTerminal: Bool {
    // These ranges contain no such scalar: visible ASCII, European alphabets, U+2070 to U+FDFF with the East
    // Asian scripts, and U+FFFD, which replaces invalid bytes. Most scalars are in them. Looking up a category
    // costs more than all other work on a scalar.
    if value >= 0x20, value < 0x7f { return false }
    if value >= 0xae, value < 0x600 || value >= 0x2070 && value < 0xfe00 || value == 0xfffd { return false }
    return switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
