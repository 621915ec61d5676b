import Testing

@testable import NetOptBench

@Suite struct TextLayoutTests {
  @Test func whatATerminalWouldActUponIsReplaced() {
    #expect(
      TextLayout.printable("a\u{1b}[2Jb\u{7}c\u{202e}d\u{9b}e") == "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\u{fffd}e")
    #expect(TextLayout.printable("*.портал.lan") == "*.портал.lan")
  }

  @Test func longTextsAreCut() {
    #expect(TextLayout.cut("abcdef", to: 6) == "abcdef")
    #expect(TextLayout.cut("abcdefg", to: 6) == "abc...")
  }

  @Test func endsThatDoNotFitTakeTwoLines() {
    let long = String(repeating: "x", count: 100)
    let lines = TextLayout.ends(long, "right")
    #expect(lines.count == 2)
    #expect(lines.allSatisfy { $0.count == TextLayout.width })
    #expect(TextLayout.ends("left", "right").map(\.count) == [TextLayout.width])
  }

  @Test func wrappedTextHangs() {
    let lines = TextLayout.hanging("NOTE  ", String(repeating: "word ", count: 20))
    #expect(lines.count == 2)
    #expect(lines[0].hasPrefix("NOTE  word") && lines[1].hasPrefix("      word"))
    #expect(lines.allSatisfy { $0.count <= TextLayout.width })
  }
}
