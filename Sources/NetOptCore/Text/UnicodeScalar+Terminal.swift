extension Unicode.Scalar {
  /// Whether a terminal that shows it may do something else than draw: obey a control character (ECMA-48), or turn the direction of
  /// writing, so that a name looks like another one.
  package var steersTerminal: Bool {
    // No scalar in these ranges steers a terminal: ASCII, European alphabets, and U+2070 to U+FDFF with the East Asian scripts. They are the most frequent,
    // and looking up a category costs more than everything else that is done to a scalar.
    if value >= 0x20, value < 0x7f { return false }
    if value >= 0xae, value < 0x600 || value >= 0x2070 && value < 0xfe00 { return false }
    return switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
