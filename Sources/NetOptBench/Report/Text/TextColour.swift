/// The setting that says whether the text report uses colour. Red marks excluded targets, failed requests,
/// missed objectives, and targets that are significantly slower than the reference. Green marks targets that
/// are significantly faster.
package struct TextColour: Hashable, Sendable {
  /// Whether the report uses colour.
  package let isOn: Bool

  /// Makes a setting.
  package init(isOn: Bool) { self.isOn = isOn }

  /// Decides by the usual conventions. The first of these that is given decides: `--no-color` and `NO_COLOR`
  /// (no-color.org) turn colour off, `FORCE_COLOR` (force-color.org) turns it on, `TERM=dumb` turns it off.
  /// Without any of them, the report uses colour on a terminal only. An empty variable counts as unset.
  ///
  /// - Parameters:
  ///   - isRefused: whether the user gave `--no-color`.
  ///   - isTerminal: whether the report goes to a terminal.
  ///   - environment: the environment variables of the process.
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
