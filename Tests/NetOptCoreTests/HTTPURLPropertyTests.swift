import NetOptCore
import Testing

/// Properties of URLs from random texts: `HTTPURL` refuses a text, or makes a URL whose description parses to
/// the same URL.
@Suite struct HTTPURLPropertyTests {
  /// The texts of which `text` composes random texts.
  private static let pieces = [
    "http", "https", "HTTPS", "://", ":", "/", "//", "/", "?", "#", "@", "[", "]", "[::1]", "::", "%", "%2F",
    "\\",
    "a", "B.test", "x.y", ".", "..", "-", "_", "1.2.3.4", "127.1", "0x7f", "443", "0", "65536", "xn--a", "é",
    "\u{301}",
    "😀", "\u{202e}", "\0", "\r\n", "\n", "\t", " ", "\u{7f}", "\u{85}", "{", "}", "|", "\"", "<", "&", "=",
    ";", "+",
  ]

  /// Returns random bytes as text with a probability of 20 %, and otherwise up to 8 random pieces.
  private func text(_ random: inout SplitMix64) -> String {
    if random.chance(20) {
      let bytes = (0..<Int.random(in: 0...30, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
      }
      return String(decoding: bytes, as: UTF8.self)
    }
    return (0..<Int.random(in: 0...8, using: &random)).map { _ in
      Self.pieces.randomElement(using: &random) ?? ""
    }.joined()
  }

  /// Checks the rules that hold for every URL.
  private func check(_ url: HTTPURL) throws {
    #expect(try HTTPURL(url.description) == url)
    #expect(url.target.hasPrefix("/"))
    #expect(url.target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "#") })
    #expect(!url.origin.host.isEmpty)
    #expect(url.origin.port > 0)
    #expect(url.path + (url.query.map { "?" + $0 } ?? "") == url.target)
  }

  @Test("every accepted text gives a URL whose description parses to the same URL")
  func acceptedTexts() throws {
    var random = SplitMix64(seed: 2)
    var accepted = 0
    for _ in 0..<20_000 {
      let prefix = random.chance(40) ? "https://a.test" : random.chance(60) ? "http://" : ""
      guard let url = try? HTTPURL(prefix + text(&random)) else { continue }
      accepted += 1
      try check(url)
    }
    #expect(accepted > 1000)
  }

  @Test("every resolved reference gives a URL whose description parses to the same URL")
  func resolvedReferences() throws {
    var random = SplitMix64(seed: 3)
    var accepted = 0
    for _ in 0..<20_000 {
      let base = try HTTPURL("https://a.test/b/../c;d?e")
      guard let url = try? base.resolving(text(&random)) else { continue }
      accepted += 1
      try check(url)
    }
    #expect(accepted > 5000)
  }
}
