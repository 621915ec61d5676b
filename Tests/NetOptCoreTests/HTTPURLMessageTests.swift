import NetOptCore
import Testing

/// What the messages of URLs that are refused show of them.
@Suite struct HTTPURLMessageTests {
  private func refusal(of text: String) -> String? {
    #expect(throws: NetOptError.self) { try HTTPURL(text) }?.message
  }

  @Test(arguments: [
    "https://user:secret@a.test/", "https://secret@a.test/", "ftp://user:secret@a.test/",
    "user:secret@a.test",
    "https://user:secret@a.test/ x", "https://user:se/secret@a.test/", "https://user:se@secret@a.test",
    "//user:secret@a.test//", "https:\u{301}//user:secret@a.test/",
  ])
  func showNoPassword(_ text: String) throws {
    let message = try #require(refusal(of: text))
    #expect(!message.contains("secret"))
    #expect(message.contains("@a.test"))
  }

  @Test func showNoControlCharacters() throws {
    let message = try #require(refusal(of: "https://a.test/\u{1b}[2J\r\n\u{7f}\u{9b}x"))
    #expect(
      message.hasPrefix(
        "\"https://a.test/\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}x\" is not a usable URL: "))
  }

  /// What stands before and after a hundred thousand of a character.
  @Test(arguments: [
    ("", "x", ""), ("", "x", "://a.test"), ("https://", "x", ""), ("https://", "x", ".test"),
    ("https://[", "x", "]"),
    ("https://[::1]", "x", ""), ("https://a:", "9", ""), ("https://é", "\u{301}", ""),
    ("https://a.", "1", ""),
    ("", "x", "@"),
  ])
  func areShort(_ before: String, _ repeated: String, _ after: String) throws {
    let message = try #require(refusal(of: before + String(repeating: repeated, count: 100_000) + after))
    #expect(message.unicodeScalars.count < 400)
    #expect(message.contains("…"))
  }
}
