import NetOptCore
import Testing

@Suite struct TerminalScalarTests {
  @Test(
    "steersTerminal is true for exactly the control, format, line separator and paragraph separator scalars")
  func categories() {
    for scalar in (0...0x10ffff).lazy.compactMap({ Unicode.Scalar($0 as UInt32) }) {
      let steers: Bool =
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
      if scalar.steersTerminal != steers { Issue.record("U+\(String(scalar.value, radix: 16))") }
    }
  }
}
