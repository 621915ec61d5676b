import Testing

@testable import NetOptBench

@Suite struct TextLayoutTests {
  @Test("printable replaces characters that a terminal acts on")
  func controlCharacters() {
    #expect(
      TextLayout.printable("a\u{1b}[2Jb\u{7}c\u{202e}d\u{9b}e") == "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\u{fffd}e")
    #expect(TextLayout.printable("*.портал.lan") == "*.портал.lan")
  }

  @Test("cut shortens a text that is longer than the width")
  func longText() {
    #expect(TextLayout.cut("abcdef", to: 6) == "abcdef")
    #expect(TextLayout.cut("abcdefg", to: 6) == "abc...")
  }

  @Test("ends puts two texts on two lines if they do not fit on one line")
  func twoEnds() {
    let long = String(repeating: "x", count: 100)
    let lines = TextLayout.ends(long, "right")
    #expect(lines.count == 2)
    #expect(lines.allSatisfy { $0.count == TextLayout.width })
    #expect(TextLayout.ends("left", "right").map(\.count) == [TextLayout.width])
  }

  @Test("hanging indents the further lines of a text")
  func hangingText() {
    let lines = TextLayout.hanging("NOTE  ", String(repeating: "word ", count: 20))
    #expect(lines.count == 2)
    #expect(lines[0].hasPrefix("NOTE  word") && lines[1].hasPrefix("      word"))
    #expect(lines.allSatisfy { $0.count <= TextLayout.width })
  }
}
