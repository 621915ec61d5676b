import Testing

@testable import NetOptCommands

/// Tests of `Text`, which formats the text that commands print for people.
@Suite struct TextTests {
  @Test(arguments: [
    (Duration.zero, "0.0 ms"), (.microseconds(49), "0.0 ms"), (.microseconds(50), "0.1 ms"),
    (.microseconds(12_340), "12.3 ms"), (.microseconds(999_949), "999.9 ms"),
    (.microseconds(999_950), "1.00 s"),
    (.milliseconds(1005), "1.01 s"), (.seconds(75), "75.00 s"), (.milliseconds(-5), "0.0 ms"),
  ])
  func writesTimes(duration: Duration, text: String) {
    #expect(Text.time(duration) == text)
  }

  @Test("printable text has spaces in place of control and direction characters")
  func printable() {
    #expect(Text.printable("a\u{1b}[31m\nb\u{9b}é") == "a [31m b é")
    #expect(Text.printable("plain") == "plain")
    #expect(Text.printable("a\u{202e}b\u{2066}c\u{2028}") == "a b c ")
  }

  @Test("left pads or cuts a text to a width, and right pads it")
  func fillsAndCuts() {
    #expect(Text.left("ab", 4) == "ab  ")
    #expect(Text.left("abcdef", 5) == "ab...")
    #expect(Text.right("ab", 4) == "  ab")
    #expect(Text.right("abc", 2) == "abc")
  }

  @Test func breaksLinesAtSpaces() {
    #expect(Text.wrapped("aa bb  cc\ndddddd e", at: 5) == ["aa bb", "cc", "dddddd", "e"])
    #expect(Text.wrapped("", at: 5) == [])
  }

  @Test("a count of 1 uses the singular")
  func counts() {
    #expect(Text.count(1, "byte") == "1 byte")
    #expect(Text.count(0, "byte") == "0 bytes")
  }

  @Test("lines have no spaces at their ends")
  func linesEndWithoutSpaces() {
    #expect(Text.lines(["a  ", "", "   "]) == "a\n\n\n")
  }
}
