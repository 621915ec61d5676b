import NetOptCaching
import NetOptCore
import Testing

struct CachePolicyTests {
  /// A stored response that is fresh for 100 s and has an `ETag`.
  private func fresh(_ more: HeaderFields = [:]) throws -> CacheEntry {
    try stored(["Cache-Control": "max-age=100", "ETag": "\"a\""] + more)
  }

  @Test("without a stored response a request is sent, or refused with only-if-cached")
  func nothingStored() throws {
    #expect(try decision() == ("fetch:uri-miss", "RFC 9111, section 4"))
    #expect(try decision(["Cache-Control": "only-if-cached"]) == ("refuse", "RFC 9111, section 5.2.1.7"))
  }

  /// `after` is the time from the receipt of the stored response to the request, in seconds.
  @Test(
    "the Cache-Control directives of a request decide by RFC 9111",
    arguments: [
      ("no-cache", 1, "validate", "5.2.1.4"), ("max-age=0", 1, "validate", "5.2.1.1"),
      ("max-age=10", 9, "hit", "5.2.2.1"), ("max-age=10", 11, "validate", "5.2.1.1"),
      ("min-fresh=50", 49, "hit", "5.2.2.1"), ("min-fresh=50", 51, "validate", "5.2.1.3"),
      ("max-stale=10", 109, "stale", "5.2.1.2"), ("max-stale=10", 111, "validate", "4.2"),
      ("max-stale", 100_000, "stale", "5.2.1.2"), ("max-stale=x", 101, "validate", "4.2"),
      ("max-age=5, max-stale=1000", 101, "validate", "5.2.1.1"), ("no-store", 1, "bypass", "5.2.1.5"),
      ("only-if-cached", 1, "hit", "5.2.2.1"), ("only-if-cached", 101, "refuse", "5.2.1.7"),
    ] as [(String, Double, String, String)])
  func requestDirectives(_ control: String, _ after: Double, _ word: String, _ section: String) throws {
    let found = try decision(["Cache-Control": control], on: fresh(), after: after)
    #expect(found == (word, "RFC 9111, section \(section)"))
  }

  @Test("Pragma: no-cache counts in requests without Cache-Control, and not in responses")
  func pragma() throws {
    #expect(try decision(["Pragma": "no-cache"], on: fresh()).word == "validate")
    #expect(try decision(["Pragma": "other"], on: fresh()).word == "hit")
    #expect(try decision(["Pragma": "no-cache", "Cache-Control": "max-age=50"], on: fresh()).word == "hit")
    // `Pragma` in a response has no meaning.
    #expect(try decision(on: fresh(["Pragma": "no-cache"])).word == "hit")
  }

  @Test("a response with must-revalidate or no-cache is never served stale")
  func mustRevalidate() throws {
    let entry = try stored([
      "Cache-Control": "max-age=10, must-revalidate, stale-while-revalidate=100", "ETag": "\"a\"",
    ])
    #expect(try decision(on: entry, after: 9).word == "hit")
    #expect(try decision(on: entry, after: 11) == ("validate", "RFC 9111, section 5.2.2.2"))
    #expect(try decision(["Cache-Control": "max-stale"], on: entry, after: 11).word == "validate")
    let noCache = try stored(["Cache-Control": "max-age=10, no-cache", "ETag": "\"a\""])
    #expect(try decision(on: noCache) == ("validate", "RFC 9111, section 5.2.2.4"))
    #expect(try decision(["Cache-Control": "max-stale"], on: noCache).word == "validate")
  }

  @Test("max-age=0 in a request does not reload a fresh immutable response")
  func immutable() throws {
    let entry = try stored(["Cache-Control": "max-age=10, immutable", "ETag": "\"a\""])
    #expect(
      try decision(["Cache-Control": "max-age=0"], on: entry, after: 9) == ("hit", "RFC 8246, section 2"))
    #expect(try decision(["Cache-Control": "no-cache"], on: entry, after: 9).word == "validate")
    #expect(try decision(["Cache-Control": "max-age=0"], on: entry, after: 11).word == "validate")
  }

  @Test("a response is served stale and refreshed within stale-while-revalidate")
  func staleWhileRevalidate() throws {
    let entry = try stored(["Cache-Control": "max-age=10, stale-while-revalidate=5"])
    #expect(try decision(on: entry, after: 15) == ("stale+refresh", "RFC 5861, section 3"))
    #expect(try decision(on: entry, after: 15.5).word == "fetch")
  }

  @Test("with only-if-cached a stale response is served and not refreshed")
  func staleOnlyIfCached() throws {
    let entry = try stored(["Cache-Control": "max-age=10, stale-while-revalidate=5"])
    let request = try asked(["Cache-Control": "only-if-cached"])
    let decided = CachePolicy().decide(request, [entry], at: start + 15_000)
    #expect(words(decided.applyingOnlyIfCached(of: request)) == ("stale", "RFC 5861, section 3"))
    #expect(words(decided.applyingOnlyIfCached(of: try asked())) == ("stale+refresh", "RFC 5861, section 3"))
  }

  @Test("a stale response is served after a failure only where the directives allow it")
  func staleAfterFailure() throws {
    let policy = CachePolicy(staleWhenUnreachable: 100_000)
    // The section of the rule by which the entry answers after a failure; `nil` when the entry must not
    // answer. `status` is the status of the failed response; `nil` when no response arrived.
    func after(_ status: Int?, _ entry: CacheEntry, at seconds: Int64, _ request: HeaderFields = [:]) throws
      -> String?
    {
      policy.afterFailure(status, try asked(request), entry, at: start + seconds * 1000)?.rule.section
    }
    let plain = try stored(["Cache-Control": "max-age=10"])
    #expect(try after(nil, plain, at: 20) == "RFC 9111, section 4.2.4")
    #expect(try after(nil, plain, at: 111) == nil)
    #expect(try after(503, plain, at: 20) == nil)
    let lenient = try stored(["Cache-Control": "max-age=10, stale-if-error=5"])
    #expect(try after(503, lenient, at: 14) == "RFC 5861, section 4")
    #expect(try after(503, lenient, at: 16) == nil)
    #expect(try after(404, lenient, at: 14) == nil)
    #expect(try after(503, plain, at: 14, ["Cache-Control": "stale-if-error=5"]) == "RFC 5861, section 4")
    for control in ["max-age=10, must-revalidate", "max-age=10, no-cache, stale-if-error=60"] {
      #expect(try after(nil, stored(["Cache-Control": control]), at: 20) == nil)
    }
    #expect(try after(nil, plain, at: 20, ["Cache-Control": "no-cache"]) == nil)
    // The caller reloads a response that is still fresh, and the server answers with 503. The caller must see
    // the 503, because no directive allows the stored response to take its place.
    #expect(try after(503, plain, at: 5, ["Cache-Control": "max-age=0"]) == nil)
    #expect(try after(nil, stored(["Cache-Control": "max-age=0, must-revalidate"]), at: 0) == nil)
  }

  @Test("a stale response is validated by its ETag and its Last-Modified")
  func validators() throws {
    let entry = try stored(["Cache-Control": "max-age=1", "ETag": "W/\"a\"", "Last-Modified": date(-5)])
    let decision = CachePolicy().decide(try asked(), [entry], at: start + 2000)
    guard case .validate(_, let fields, .stale, _) = decision else {
      Issue.record("it is not validated")
      return
    }
    #expect(fields == ["If-None-Match": "W/\"a\"", "If-Modified-Since": date(-5)])
  }

  @Test("the cache evaluates If-None-Match and If-Modified-Since of a request")
  func conditions() throws {
    let entry = try stored(["Cache-Control": "max-age=100", "ETag": "\"a\"", "Last-Modified": date(-100)])
    // The part of the stored response that answers a request with these fields; `nil` when the request
    // goes to the origin.
    func part(_ fields: HeaderFields) throws -> ResponsePart? {
      guard case .serve(let service) = CachePolicy().decide(try asked(fields), [entry], at: start) else {
        return nil
      }
      return service.part
    }
    #expect(try part(["If-None-Match": "\"b\", W/\"a\""]) == .notModified)
    #expect(try part(["If-None-Match": "*"]) == .notModified)
    #expect(try part(["If-None-Match": "\"b,a\""]) == .whole)
    #expect(try part(["If-Modified-Since": date(-100)]) == .notModified)
    #expect(try part(["If-Modified-Since": date(-101)]) == .whole)
    // With both conditions the tag decides (RFC 9110, section 13.1.3).
    #expect(try part(["If-None-Match": "\"b\"", "If-Modified-Since": date(0)]) == .whole)
    #expect(try decision(["If-Match": "\"a\""], on: entry) == ("bypass", "RFC 9110, section 13.1"))
    // If the stored response is stale, the request goes to the origin with the caller's own conditions.
    #expect(try decision(["If-None-Match": "\"a\""], on: entry, after: 101).word == "fetch")
  }

  @Test(
    "a range is served from a complete response, if it is one valid byte range",
    arguments: [
      ("bytes=0-1", 0..<2), ("bytes=8-", 8..<10), ("bytes=-1", 9..<10), ("bytes=-99", 0..<10),
      ("bytes=9-99", 9..<10),
      ("Bytes=0-0", 0..<1), ("bytes=10-", nil), ("bytes=5-4", nil), ("bytes=0-1,3-4", nil), ("bytes=-0", nil),
      ("bytes=x-", nil), ("lines=0-1", nil), ("bytes=", nil), ("bytes=5", nil),
      ("bytes=0-99999999999999999999", 0..<10),
    ] as [(String, Range<Int>?)])
  func ranges(_ text: String, _ range: Range<Int>?) throws {
    let decision = CachePolicy().decide(try asked(["Range": text]), [try fresh()], at: start)
    guard let range else {
      #expect(words(decision) == ("fetch:partial", "RFC 9110, section 14.2"))
      return
    }
    guard case .serve(let service) = decision else {
      Issue.record("\(text) is not served")
      return
    }
    #expect(service.part == .bytes(range))
  }

  @Test("a range is served if If-Range equals the response's strong tag or its date")
  func ifRange() throws {
    // The part of the stored response, with the entity tag `tag`, that answers a request for the bytes 0
    // and 1 with this `If-Range`.
    func part(_ condition: String, _ tag: String = "\"a\"") throws -> ResponsePart? {
      let entry = try stored(["Cache-Control": "max-age=100", "ETag": tag, "Last-Modified": date(-9)])
      let request = try asked(["Range": "bytes=0-1", "If-Range": condition])
      guard case .serve(let service) = CachePolicy().decide(request, [entry], at: start) else { return nil }
      return service.part
    }
    #expect(try part("\"a\"") == .bytes(0..<2))
    #expect(try part("\"b\"") == .whole)
    #expect(try part("W/\"a\"", "W/\"a\"") == .whole)
    #expect(try part(date(-9)) == .bytes(0..<2))
    #expect(try part(date(-8)) == .whole)
  }

  @Test("methods other than GET and HEAD go to the origin")
  func otherMethods() throws {
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "M-SEARCH"] as [NetOptRequest.Method] {
      #expect(try decision([:], method, on: fresh()).word == "fetch:method")
    }
    #expect(try decision([:], .head, on: fresh()).word == "hit")
    #expect(try decision([:], .head, on: fresh(), after: 101).word == "fetch")
  }

  @Test("a stored gzip response is not served to a request for decoded content")
  func encodedContent() throws {
    let entry = try stored(["Cache-Control": "max-age=100", "Content-Encoding": "gzip"])
    #expect(try decision(on: entry).section == "RFC 9110, section 12.5.3")
    // libcurl cannot decode the coding "own". So the entry is the best answer that there is.
    let odd = try stored(["Cache-Control": "max-age=100", "Content-Encoding": "own"])
    #expect(try decision(on: odd).word == "hit")
  }
}
