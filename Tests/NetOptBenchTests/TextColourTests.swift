import NetOptBench
import Testing

@Suite struct TextColourTests {
  private func isOn(
    refused: Bool = false, terminal: Bool = true, _ environment: [String: String] = ["TERM": "xterm"]
  ) -> Bool {
    TextColour(isRefused: refused, isTerminal: terminal, environment: environment).isOn
  }

  @Test func aTerminalHasColourUnlessItIsDumb() {
    #expect(isOn())
    #expect(!isOn(terminal: false))
    #expect(!isOn(["TERM": "dumb"]))
  }

  @Test func theOptionAndNoColorTurnItOff() {
    #expect(!isOn(refused: true, ["FORCE_COLOR": "1"]))
    #expect(!isOn(["NO_COLOR": "1", "FORCE_COLOR": "1"]))
    #expect(isOn(["NO_COLOR": "", "TERM": "xterm"]))
  }

  @Test func forceColorTurnsItOn() {
    #expect(isOn(terminal: false, ["FORCE_COLOR": "1", "TERM": "dumb"]))
    #expect(!isOn(terminal: false, ["FORCE_COLOR": ""]))
  }
}
