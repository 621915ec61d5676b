import FoundationEssentials
import NetOptCore
import TestTools
import Testing

/// `HTTPURL.adding(query:)`.
@Suite struct AddedQueryTests {
  @Test("parameters of any text come back from the URL, and nothing else of the URL changes")
  func anyText() throws {
    let letters = [
      "a", "Z", "0", "-", "~", " ", "+", "&", "=", "/", "?", "#", "%", "%20", "ä", "😀", "\0", "\r\n", "\"",
      ";",
    ]
    for seed in 1...200 as ClosedRange<UInt64> {
      var random = SplitMix64(seed: seed)
      let text = { (random: inout SplitMix64) in
        (0..<random.below(6)).map { _ in random.element(of: letters) }.joined()
      }
      let base = try HTTPURL(
        random.element(of: ["https://a.test", "https://a.test/b/c", "http://a.test:81/?x=%20y&z"]))
      let (first, second) = ((text(&random), text(&random)), (text(&random), text(&random)))
      let url = base.adding(query: [first.0: first.1, second.0: second.1])
      #expect(url.path == base.path && url.origin == base.origin)
      let old = base.query.map { "\($0)&" } ?? ""
      #expect(url.query?.hasPrefix(old) == true)
      // The same URL is read by netopt, which refuses spaces and control characters, and by Foundation.
      #expect(try HTTPURL(url.description) == url, "seed \(seed)")
      let items = URLComponents(string: url.description)?.queryItems?.suffix(2).map {
        [$0.name, $0.value ?? ""]
      }
      #expect(items == [[first.0, first.1], [second.0, second.1]], "seed \(seed): \(url)")
    }
  }

  @Test("no parameters leave the URL as it is")
  func none() throws {
    for text in ["https://a.test/", "https://a.test/b?", "https://a.test/b?c=d"] {
      #expect(try HTTPURL(text).adding(query: [:]) == HTTPURL(text))
    }
    #expect(try HTTPURL("https://a.test/b?").adding(query: ["c": "d"]).description == "https://a.test/b?c=d")
  }
}
