import NetOptCaching
import NetOptCore
import Testing

struct CacheControlTests {
  /// The directives of a message. Each argument is the value of one `Cache-Control` line.
  private func read(_ lines: String...) -> CacheControl {
    CacheControl(HeaderFields(lines.map { HeaderField("Cache-Control", $0) }))
  }

  @Test func directivesAreRead() {
    let control = read(
      "max-age=60, no-cache", "No-Store , must-revalidate,,immutable, stale-while-revalidate=5")
    #expect(control.maxAge == 60_000)
    #expect(control.noCache && control.noStore && control.mustRevalidate && control.immutable)
    #expect(control.staleWhileRevalidate == 5000)
    #expect(control.staleIfError == nil)
  }

  /// A number of more than 2^31 seconds counts as 2^31 seconds.
  @Test(
    "max-age is read from unusual forms, and an invalid value counts as 0",
    arguments: [
      ("max-age=\"60\"", 60_000), ("max-age=0060", 60_000), ("MAX-AGE=60", 60_000),
      ("max-age=60,max-age=5", 60_000),
      ("max-age=-60", 0), ("max-age=60.0", 0), ("max-age='60'", 0), ("max-age=a60", 0), ("max-age=60a", 0),
      ("max-age =60", 0), ("max-age= 60", 0), ("max-age", 0), ("max-age=", 0), ("max-age=\"60\"x", 0),
      ("max-age=2147483648", 2_147_483_648_000), ("max-age=99999999999", 2_147_483_648_000),
      ("max-age=999999999999999999999999", 2_147_483_648_000),
      ("extension=\"max-age=3600\", max-age=1", 1000),
      ("max-age=1, extension=\"max-age=3600, max-age=7\"", 1000),
      ("extension=\"a\\\", max-age=3600\", max-age=2", 2000), ("=5, max-age=3", 3000),
    ] as [(String, Int64)])
  func maxAgeOfOddForms(_ text: String, _ milliseconds: Int64) {
    #expect(read(text).maxAge == milliseconds)
  }

  @Test("directives in quoted strings do not count, and an unclosed string hides no directive")
  func quotedStrings() {
    let control = read("extension=\"no-store, no-cache\", foo=\"")
    #expect(!control.noStore && !control.noCache)
    // An unclosed string ends with its line and hides no directive.
    #expect(read("foo=\"bar", "no-store").noStore)
    #expect(read("max-age=5, foo=\"bar, no-store, baz").noStore)
    #expect(read("foo=\"bar\\\", no-store").noStore)
    #expect(read("max-age=\"5, no-cache").maxAge == 0)
  }

  @Test(
    "a directive that restricts the cache counts between semicolons too",
    arguments: [
      "no-store; max-age=60", "max-age=60; no-store", "public; no-store", "private;no-store;max-age=1",
      "max-age=60 ; no-store", "a=b; No-Store =x", "max-age=60;no-store, immutable", ";no-store",
      "max-age=60; must-revalidate; no-store", "max-age=\"60\"; no-store", "ext=\"a\"; no-store",
      "no-cache=\"Set-Cookie\" ;no-store", "private=\"a;b\"x;no-store, public", "a=60\u{600}; no-store",
      "foo=\"bar; no-store",
    ])
  func semicolons(_ text: String) {
    let control = read(text)
    #expect(control.noStore)
    #expect(control.maxAge ?? 0 == 0)
    #expect(read(text.lowercased().replacing("no-store", with: "must-revalidate")).mustRevalidate)
    // The same text in quotes, and longer names, mean nothing.
    #expect(!read("ext=\"a; no-store\"", "no-stored; a=b;no-storex").noStore)
  }

  @Test("no-cache may name fields, and applies to all fields if the list is invalid")
  func fieldsOfNoCache() {
    let control = read("no-cache=\"Set-Cookie, X-Secret\"")
    #expect(!control.noCache)
    #expect(control.uncachedFields == ["set-cookie", "x-secret"])
    #expect(read("no-cache=\"a\", no-cache").noCache)
    // With an invalid list of field names, the directive applies to the whole response.
    for value in ["x-a x-b", "x-a, (", "\"\"", "\",\"", "é"] {
      #expect(read("max-age=5, no-cache=\"\(value)\"").noCache, "\(value)")
    }
    for value in ["x-a x-b", "(", "", "\"", "é"] {
      #expect(read("max-age=5, no-cache=\(value)").noCache, "\(value)")
    }
  }

  @Test("stale and fresh windows with invalid values are ignored, and max-stale alone has no limit")
  func invalidWindows() {
    let control = read("stale-while-revalidate=x, stale-if-error, max-stale=y, min-fresh=-1")
    #expect(control.staleWhileRevalidate == nil)
    #expect(control.staleIfError == nil)
    #expect(control.maxStale == nil)
    #expect(control.minFresh == nil)
    #expect(read("max-stale").maxStale == .max)
  }

  @Test("parsing random text does not crash, and max-age is never negative")
  func anyBytesAreRead() {
    var generator = SplitMix64(seed: 1)
    let pieces = ["max-age", "=", "\"", "\\", ",", " ", "\t", "no-cache", "60", "é", "'", ";", "*"]
    for _ in 0..<5000 {
      let text = (0..<Int.random(in: 0..<12, using: &generator)).compactMap { _ in
        pieces.randomElement(using: &generator)
      }.joined()
      #expect((read(text).maxAge ?? 0) >= 0)
    }
  }

  /// In a quoted string, backslashes between the combining marks hide a long run of marks from the check
  /// of response heads (`SlowText`). Swift takes long to compare strings with such runs. So the cache must
  /// drop these names before it compares any names.
  @Test("field names with combining marks are ignored, and their no-cache applies to all fields")
  func combiningMarks() {
    let marks = String(repeating: "\u{301}\u{316}\\", count: 1_500)
    let control = CacheControl(["Cache-Control": "max-age=5, no-cache=\"x\(marks)a, Set-Cookie, y\(marks)a\""]
    )
    #expect(control.uncachedFields == ["set-cookie"] && control.noCache)
    #expect(control.maxAge == 5000)
    #expect(!StoredFields.dropsCachingTerms(of: ["Connection": "x\(marks), close, y\(marks)"], control))
  }

  /// A list is overlong if it has more than `FieldText.mostMembers` members, or more than
  /// `FieldText.mostBytes` bytes. The safe meaning is the one that keeps the response out of the cache. A
  /// `Content-Encoding` that is overlong counts as one that libcurl cannot decode.
  @Test("overlong lists are not read, and the cache assumes the safe meaning")
  func longLists() throws {
    let list = Array(repeating: "a", count: 120_000).joined(separator: ",")
    let clock = SystemTimeSource()
    let begun = clock.now()
    for _ in 0..<20 {
      let named = CacheControl(["Cache-Control": "max-age=9, no-cache=\"\(list)\""])
      #expect(named.noStore && named.isTooLong)
      #expect(CacheControl(["Cache-Control": "max-age=9, \(list)"]).noStore)
      #expect(Vary(["Vary": list]) == .everything)
      #expect(StoredFields.dropsCachingTerms(of: ["Connection": list], CacheControl([:])))
      #expect(!ContentCoding.isDecodable(["Content-Encoding": list]))
    }
    // An earlier version took 0.1 s for one list, which is 10 s for the 100 lists above.
    #expect(clock.now() - begun < .seconds(4))
    // A single long member is too long as well.
    for byte in ["a", "\u{fffd}"] {
      let member = String(repeating: byte, count: 100_000)
      #expect(CacheControl(["Cache-Control": "must-understand, max-age=9, \(member)"]).isTooLong)
      #expect(Vary(["Vary": member]) == .everything)
      #expect(StoredFields.dropsCachingTerms(of: ["Connection": member], CacheControl([:])))
    }
    // The lines of one field count together. A `Character` of two scalars is as cheap as one of one byte.
    for text in ["a", "e\u{301}"] {
      let value = "must-understand, max-age=9, " + String(repeating: text, count: 1000)
      func fields(_ name: String) -> HeaderFields {
        HeaderFields((0..<30).map { _ in HeaderField(name, value) })
      }
      #expect(CacheControl(fields("Cache-Control")).isTooLong)
      #expect(Vary(fields("Vary")) == .everything)
      #expect(StoredFields.dropsCachingTerms(of: fields("Connection"), CacheControl([:])))
    }
    let understood = "must-understand, max-age=600, " + String(repeating: "x-a, ", count: 260) + "no-cache"
    let fields: HeaderFields = ["Cache-Control": understood]
    let request = CacheRequest(try NetOptRequest(.get, "https://a.test/"))
    let storing = Storing(
      request, status: 200, fields, ResponseTerms(status: 200, fields: fields, requested: 0, received: 0))
    #expect(!storing.isStored)
    #expect(EntityTag("\"" + String(repeating: "a", count: EntityTag.longest - 2) + "\"") != nil)
    #expect(EntityTag("\"" + String(repeating: "a", count: EntityTag.longest - 1) + "\"") == nil)
    let few = Array(repeating: "a", count: 200).joined(separator: ",")
    #expect(
      CacheControl(["Cache-Control": "max-age=9, \(few)"]) == CacheControl(["Cache-Control": "max-age=9"]))
    #expect(Vary(["Vary": few]) == .fields(["a"]))
    #expect(!StoredFields.dropsCachingTerms(of: ["Connection": few], CacheControl([:])))
  }
}
