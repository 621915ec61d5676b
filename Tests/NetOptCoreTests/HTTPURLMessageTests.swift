import NetOptCore
import Testing

/// Tests of the parts of a URL that messages show: the error message for a refused URL (`HTTPURL.init`),
/// `HTTPURL.brief` and `HTTPURL.shown(given:)`.
@Suite struct HTTPURLMessageTests {
  /// Returns the error message for a text that is not a usable URL.
  private func refusal(of text: String) -> String? {
    #expect(throws: NetOptError.self) { try HTTPURL(text) }?.message
  }

  @Test("messages show the start of a long URL and hide its secret parameter")
  func longURLs() throws {
    let tail = String(repeating: "%41&b=", count: 10_000)
    let message = try #require(refusal(of: "ftp://a.test/?token=secret&a=" + tail + tail))
    let brief = try HTTPURL("https://a.test/?token=secret&a=" + tail).brief
    for text in [message, brief] {
      #expect(text.contains("?token=[hidden]&a=%41&b="))
      #expect(text.count < 300)
    }
    #expect(brief.count == 201 && brief.hasSuffix("…"))
    #expect(try HTTPURL("https://a.test/?a=1").brief == "https://a.test/?a=1")
  }

  @Test("messages hide credentials that are longer than the part of a URL that is read")
  func longSecrets() throws {
    let secret = String(repeating: "s3cret", count: 5000)
    for text in [
      "ftp://user:\(secret)@a.test/", "ftp://\(secret)@a.test/", "ftp://\(secret)%40a.test/",
      "ftp://a.test/?u=https://user:\(secret)@b.test/",
    ] {
      #expect(try !#require(refusal(of: text)).contains("s3cret"))
    }
    let nested = try HTTPURL("https://a.test/?u=https://user:\(secret)@b.test/")
    #expect(!nested.brief.contains("s3cret"))
  }

  @Test(
    "the message for a refused URL shows the host but no password",
    arguments: [
      "https://user:secret@a.test/", "https://secret@a.test/", "ftp://user:secret@a.test/",
      "user:secret@a.test",
      "https://user:secret@a.test/ x", "https://user:se/secret@a.test/", "https://user:se@secret@a.test",
      "//user:secret@a.test//", "https:\u{301}//user:secret@a.test/",
    ])
  func noPassword(_ text: String) throws {
    let message = try #require(refusal(of: text))
    #expect(!message.contains("secret"))
    #expect(message.contains("@a.test"))
  }

  /// Malformed URLs with a password: with a missing or extra slash, an encoded "@", no "@", or no host.
  @Test(
    "the message for a malformed URL shows no part of a password, wherever the URL is wrong",
    arguments: 1...10 as ClosedRange<UInt64>)
  func malformedURLs(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    func pick(_ texts: [String]) -> String { texts.randomElement(using: &random) ?? "" }
    var refused = 0
    for _ in 0..<500 {
      let parts = ["Zebra", "Quokka", "Vixen"]
      let hasUser = random.below(3) > 0
      // Without a user name, a text such as "Zebra/Quokka" is a host and a path, and no password.
      let marks = ["", "%2F", "%", "..", "!", "é", ":"] + (hasUser ? ["/", "#", "?", "\\", " "] : [])
      let end = pick(hasUser ? ["@", "%40", "%2540", ""] : ["@", "%40", "%2540"])
      // If no "@", raw or encoded, follows the password, the text after an "@" inside the password is a host,
      // which messages show. So such a password has no "@".
      let own = end.isEmpty ? marks : marks + ["@"]
      let password = parts[0] + pick(own) + parts[1] + pick(own) + parts[2]
      let text =
        pick([
          "https://", "http:/", "https:", "https:///", "//", "", "ftp://", "https//", "https:\\\\",
          " https://",
        ])
        + (hasUser ? pick(["user:", "us%65r:", "us er:", ":"]) : "") + password + end
        + (end.isEmpty ? "" : pick(["a.test", "a.test:80", "a.test:x", "[::1]", ""]))
        + pick(["", "/", "/b c", "?q=1", "/x@y"])
      let url = try? HTTPURL(text)
      for shown in [url == nil ? refusal(of: text) ?? "" : "", url == nil ? HTTPURL.shown(given: text) : ""] {
        #expect(!parts.contains(where: shown.contains), "seed \(seed): \(text): \(shown)")
      }
      if url == nil { refused += 1 }
    }
    #expect(refused > 400)
  }

  @Test(
    "messages show text that cannot be a password",
    arguments: [
      ("https://a.test:99999/x?q=1", "https://a.test:99999/x?q=1"), ("ftp://a.test/x", "ftp://a.test/x"),
      ("a.test/x?token=abc", "a.test/x?token=[hidden]"), ("localhost:8080/x", "localhost:8080/x"),
      ("https://[::1/", "https://…"), ("https://[::1]:99999/a b", "https://[::1]:99999/a b"),
      ("https://a_b..test/", "https://a_b..test/"), ("https://a.test:8o/x", "https://…"),
      ("https:/a.test/x", "https:/a.test/x"), ("2001:db8::1", "2001:db8::1"), ("Accept: x", "Accept:…"),
      ("https://a.test/b%40c d", "https://a.test…"),
      ("https://b\u{fc}cher.test/", "https://b\u{fc}cher.test/"),
    ])
  func certainText(_ text: String, _ shown: String) { #expect(HTTPURL.shown(given: text) == shown) }

  @Test("messages replace control characters")
  func controlCharacters() throws {
    let message = try #require(refusal(of: "https://a.test/\u{1b}[2J\r\n\u{7f}\u{9b}x"))
    #expect(
      message.hasPrefix(
        "\"https://a.test/\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}x\" is not a usable URL: "))
  }

  /// Each argument describes a URL: the text before 30,000 copies of a character, the character, and the
  /// text after the copies.
  @Test(
    "the message for a URL with a very long part is shorter than 400 characters",
    arguments: [
      ("", "x", ""), ("", "x", "://a.test"), ("https://", "x", ""), ("https://", "x", ".test"),
      ("https://[", "x", "]"),
      ("https://[::1]", "x", ""), ("https://a:", "9", ""), ("https://é", "\u{301}", ""),
      ("https://a.", "1", ""),
      ("", "x", "@"),
    ])
  func shortMessages(_ before: String, _ repeated: String, _ after: String) throws {
    let message = try #require(refusal(of: before + String(repeating: repeated, count: 30_000) + after))
    #expect(message.unicodeScalars.count < 400)
    #expect(message.contains("…"))
  }
}
