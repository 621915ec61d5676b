/// Whether and how the text report is coloured: failures and significant differences alone are.
package struct TextColour: Hashable, Sendable {
  /// Whether there is colour.
  package let isOn: Bool

  /// Makes a choice.
  package init(isOn: Bool) { self.isOn = isOn }

  /// Decides by the conventions: `--no-color`, then `NO_COLOR` (no-color.org), `FORCE_COLOR` (force-color.org), and
  /// `TERM=dumb`; without any of them there is colour on a terminal. An empty variable counts as not set.
  package init(isRefused: Bool, isTerminal: Bool, environment: [String: String]) {
    func isSet(_ name: String) -> Bool { !(environment[name] ?? "").isEmpty }
    if isRefused || isSet("NO_COLOR") {
      isOn = false
    } else if isSet("FORCE_COLOR") {
      isOn = true
    } else {
      isOn = isTerminal && environment["TERM"] != "dumb"
    }
  }

  /// The text in red (ECMA-48: SGR 31).
  func red(_ text: String) -> String { isOn ? "\u{1b}[31m\(text)\u{1b}[0m" : text }

  /// The text in green (SGR 32).
  func green(_ text: String) -> String { isOn ? "\u{1b}[32m\(text)\u{1b}[0m" : text }
}
