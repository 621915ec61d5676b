extension Unicode.Scalar {
  /// Whether a terminal that shows it may do something else than draw: obey a control character (ECMA-48), or turn the direction of
  /// writing, so that a name looks like another one.
  package var steersTerminal: Bool {
    // Most are of these: ASCII, the alphabets of Europe, and all from the superscripts to the presentation forms, with which the East Asian scripts are. Looking
    // the category up takes several times as long as the rest of what is done to a scalar.
    if value >= 0x20, value < 0x7f { return false }
    if value >= 0xae, value < 0x600 || value >= 0x2070 && value < 0xfe00 { return false }
    return switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
