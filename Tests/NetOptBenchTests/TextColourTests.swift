import NetOptBench
import Testing

@Suite struct TextColourTests {
  /// Whether colour is on. `refused` stands for the option `--no-color`.
  private func isOn(
    refused: Bool = false, terminal: Bool = true, _ environment: [String: String] = ["TERM": "xterm"]
  ) -> Bool {
    TextColour(isRefused: refused, isTerminal: terminal, environment: environment).isOn
  }

  @Test("colour is on for a terminal unless the terminal is dumb")
  func terminals() {
    #expect(isOn())
    #expect(!isOn(terminal: false))
    #expect(!isOn(["TERM": "dumb"]))
  }

  @Test("the option and a non-empty NO_COLOR turn colour off, even with FORCE_COLOR")
  func noColour() {
    #expect(!isOn(refused: true, ["FORCE_COLOR": "1"]))
    #expect(!isOn(["NO_COLOR": "1", "FORCE_COLOR": "1"]))
    #expect(isOn(["NO_COLOR": "", "TERM": "xterm"]))
  }

  @Test("a non-empty FORCE_COLOR turns colour on, even without a terminal")
  func forcedColour() {
    #expect(isOn(terminal: false, ["FORCE_COLOR": "1", "TERM": "dumb"]))
    #expect(!isOn(terminal: false, ["FORCE_COLOR": ""]))
  }
}
