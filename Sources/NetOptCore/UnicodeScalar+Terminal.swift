extension Unicode.Scalar {
  /// Whether a terminal that shows it may do something else than draw: obey a control character (ECMA-48), or turn the direction of
  /// writing, so that a name looks like another one.
  package var steersTerminal: Bool {
    // Most are of these.
    if value >= 0x20, value < 0x7f { return false }
    return switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
