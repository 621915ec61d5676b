import NetOptCore
import Testing

@Suite struct PrintableTextTests {
  @Test("printable replaces characters that control a terminal, and cuts long text")
  func printable() {
    #expect("plain text".printable(10) == "plain text")
    #expect("plain text".printable(5) == "plain…")
    #expect("tab\there, \u{202e}turned, \u{2028}broken".printable(99) == "tab�here, �turned, �broken")
    #expect("日本語".printable(3) == "日本語")
    #expect("日本語".printable(2) == "日本…")
  }
}
