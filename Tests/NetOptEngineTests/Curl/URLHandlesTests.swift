import NetOptCore
import Testing

@testable import NetOptEngine

@Suite struct URLHandlesTests {
  @Test func parsesAURLOnce() throws {
    var handles = URLHandles()
    let one = try HTTPURL("https://api.test/one")
    let two = try HTTPURL("https://api.test/two?a=b")
    let first = try handles.handle(for: one)
    let again = try handles.handle(for: one)
    #expect(again === first)
    let second = try handles.handle(for: two)
    #expect(second !== first)
    let third = try handles.handle(for: one)
    #expect(third === first)
  }

  @Test("one URL more than the limit drops all earlier handles")
  func tooManyURLs() throws {
    var handles = URLHandles()
    let url = try HTTPURL("https://api.test/0")
    let first = try handles.handle(for: url)
    for number in 1...URLHandles.most { _ = try handles.handle(for: HTTPURL("https://api.test/\(number)")) }
    let again = try handles.handle(for: url)
    #expect(again !== first)
  }

  /// libcurl accepts URLs of at most 8,000,000 bytes (CURL_MAX_INPUT_LENGTH). The test checks the error. Only
  /// a sanitizer detects that the handle (`CURLU`) is freed twice or not at all.
  @Test("refusing a URL frees its handle exactly once, and the error is short and hides the token")
  func refusedURL() throws {
    let start = try HTTPURL("https://api.test/?token=secret&a=")
    let rest = String(repeating: "a", count: 8_000_001 - start.description.utf8.count)
    let url = HTTPURL(origin: start.origin, target: start.target + rest)
    for _ in 0..<3 {
      let error = #expect(throws: NetOptError.self) { try URLHandle(url) }
      #expect(error?.code == .invalidURL)
      #expect(error?.message.contains("8000001 bytes") == true)
      #expect(error?.message.contains("https://api.test/?token=[hidden]&a=aaa") == true)
      #expect(error?.message.count ?? 0 < 400)
    }
  }

  @Test("a URL whose path and query have up to 16 KiB is kept, and a longer URL is not kept")
  func longURLs() throws {
    var handles = URLHandles()
    let longest = try HTTPURL("https://api.test/" + String(repeating: "a", count: URLHandles.longest - 1))
    let longer = try HTTPURL(longest.description + "a")
    let kept = try handles.handle(for: longest)
    weak let released = try handles.handle(for: longer)
    #expect(released == nil)
    let again = try handles.handle(for: longest)
    #expect(again === kept)
  }
}
