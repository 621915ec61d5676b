import NetOptCaching
import NetOptCore
import Testing

struct FresheningTests {
  private func updated(_ old: HeaderFields, _ news: HeaderFields) throws -> CacheEntry {
    Freshening.updated(
      try stored(old), with: news, for: try asked(["Foo": "1"]), requested: start + 5000,
      received: start + 5100)
  }

  @Test func a304BringsTheFieldsUpToDate() throws {
    let old: HeaderFields = [
      "A": "1", "B": "1", "b": "2", "Content-Length": "10", "Content-Type": "text/plain", "Age": "50",
      "Cache-Control": "max-age=1",
    ]
    let news: HeaderFields = [
      "b": "3", "C": "4", "Content-Length": "0", "Content-Encoding": "gzip", "Content-Range": "x",
      "Cache-Control": "max-age=9", "Connection": "close, d", "d": "5", "Set-Cookie": "a=2",
    ]
    let entry = try updated(old, news)
    #expect(
      entry.fields == [
        "A": "1", "Content-Length": "10", "Content-Type": "text/plain", "b": "3", "C": "4",
        "Cache-Control": "max-age=9", "Date": date(5),
      ])
    #expect(entry.body == Array("0123456789".utf8))
    #expect(entry.terms.age(at: start + 5100) == 100)
    #expect(entry.terms.freshness.lifetime == 9000)
  }

  @Test("an entry to which each update adds fields is forgotten when they are more than one head has")
  func growingFields() throws {
    func news(_ names: Range<Int>, _ bytes: Int) -> HeaderFields {
      HeaderFields(names.map { HeaderField("Foo-\($0)", String(repeating: "a", count: bytes)) })
    }
    var many = try stored([:])
    var large = try stored([:])
    for round in 0..<4 {
      let names = 900 * round..<900 * (round + 1)
      many = Freshening.updated(
        many, with: news(names, 1), for: try asked([:]), requested: start, received: start)
      #expect(Freshening.isKept(many, after: [:]) == (many.fields.count <= 2000))
      large = Freshening.updated(
        large, with: news(round..<round + 1, 100_000), for: try asked([:]), requested: start, received: start)
      #expect(Freshening.isKept(large, after: [:]) == (round < 2))
    }
    #expect(many.fields.count > 3600)
  }

  @Test("an entry that more and more fields select is forgotten, and no update takes long")
  func growingSelectors() throws {
    func vary(_ names: Range<Int>) -> HeaderFields {
      ["Vary": names.map { "Foo-\($0)" }.joined(separator: ", ")]
    }
    var entry = try stored(vary(0..<40))
    #expect(Freshening.isKept(entry, after: [:]))
    // First the same names, then others until there are too many.
    for (names, isKept) in [(0..<40, true), (40..<64, true), (64..<65, false)] {
      entry = Freshening.updated(
        entry, with: vary(names), for: try asked(["Foo-1": "1"]), requested: start, received: start)
      #expect(entry.selectors.count == names.upperBound)
      #expect(Freshening.isKept(entry, after: [:]) == isKept)
    }
  }

  @Test func theTagOfDecodedContentStaysWeak() throws {
    #expect(try updated(["ETag": "W/\"a\""], ["ETag": "\"a\""]).fields["ETag"] == "W/\"a\"")
    #expect(try updated(["ETag": "\"a\""], ["ETag": "\"a\""]).fields["ETag"] == "\"a\"")
  }

  @Test func whatA304SaysNewlyCounts() throws {
    // Without a date it is from when it came.
    let old = try updated(["Date": date(-5000), "Cache-Control": "max-age=60"], [:])
    #expect(old.terms.age(at: start + 5100) == 100)
    #expect(
      try updated([:], ["Vary": "Foo"]).selectors == Vary(["Vary": "Foo"]).selectors(of: asked(["Foo": "1"])))
    #expect(Freshening.isKept(old, after: [:]))
    for news in [["Cache-Control": "no-store"], ["Vary": "*"]] as [HeaderFields] {
      #expect(try !Freshening.isKept(updated([:], news), after: news))
    }
  }

  @Test(
    "a 304 whose terms are not stored leaves nothing in the cache",
    arguments: [
      ["Vary": "X-User", "Connection": "Vary"], ["Vary": "*", "Connection": "close, vary"],
      ["Vary": "X-User", "Cache-Control": "max-age=600, no-cache=\"vary\""],
      ["Cache-Control": "no-store", "Connection": "cache-control"],
    ] as [HeaderFields])
  func lostTerms(_ news: HeaderFields) throws {
    #expect(try !Freshening.isKept(updated([:], news), after: news))
    #expect(try Freshening.isKept(updated([:], news), after: ["Connection": "close"]))
  }

  /// The body was selected by what counted when it was stored: a 304 that says less makes it no answer to others.
  @Test(
    arguments: [[:], ["Vary": ""], ["Vary": "Bar"], ["Vary": "Foo"], ["Vary": "bar, foo"]] as [HeaderFields])
  func a304TakesNoSelectorAway(_ news: HeaderFields) throws {
    let request = try asked(["Foo": "1", "Bar": "2"])
    let old = Vary(["Vary": "Foo"]).selectors(of: request)
    let entry = Freshening.updated(
      try stored(["Vary": "Foo"], selectors: old), with: news, for: request, requested: start + 5000,
      received: start + 5100)
    #expect(Vary.selects(entry, request))
    #expect(try !Vary.selects(entry, asked(["Foo": "2", "Bar": "2"])))
    let isWider = Vary(news) != .nothing && Vary(news) != .fields(["foo"])
    #expect(try Vary.selects(entry, asked(["Foo": "1", "Bar": "3"])) != isWider)
  }

  /// "\u{fffd}" stands for bytes that are not UTF-8: which they were is not known any more.
  @Test(arguments: [
    ("\"é\"", "\"e\u{301}\""), ("\"K\"", "\"\u{212A}\""), ("\"\u{fffd}\"", "\"\u{fffd}\""),
    ("\"a\"", "\"\u{fffd}\""),
    ("\"\u{fffd}\"", "\"a\""),
  ])
  func tagsAreComparedByTheirBytes(_ ours: String, _ theirs: String) throws {
    #expect(EntityTag(ours).map { $0 == EntityTag(theirs) } != true)
    #expect(!Validators(["ETag": ours]).admit(["ETag": theirs], at: start / 1000) || EntityTag(ours) == nil)
    let entry = try stored(["ETag": ours, "Cache-Control": "max-age=0"])
    #expect(Freshening.afterHead(entry, status: 200, ["ETag": theirs]) == .remove)
    #expect(try !asked(["If-None-Match": theirs]).conditions.isNotModified(entry))
  }

  @Test func a304AboutSomethingElseIsNotBelieved() throws {
    #expect(!Validators(["Last-Modified": date(0)]).admit(["ETag": "\"\u{fffd}\""], at: start / 1000))
    let validators = Validators(["ETag": "W/\"a\""])
    #expect(validators.admit(["ETag": "\"a\""], at: start / 1000))
    #expect(validators.admit([:], at: start / 1000))
    #expect(!validators.admit(["ETag": "\"b\""], at: start / 1000))
  }

  @Test("a 304 about another date is about another version, unless tags say otherwise")
  func datesOfA304() {
    let (dated, both) = (
      Validators(["Last-Modified": date(0)]), Validators(["ETag": "\"a\"", "Last-Modified": date(0)])
    )
    for validators in [dated, both] {
      #expect(validators.admit(["Last-Modified": date(0)], at: start / 1000))
      #expect(!validators.admit(["Last-Modified": date(-60)], at: start / 1000))
      #expect(!validators.admit(["Last-Modified": date(60)], at: start / 1000))
      #expect(validators.admit([:], at: start / 1000))
    }
    #expect(both.admit(["ETag": "\"a\"", "Last-Modified": date(60)], at: start / 1000))
    // A weak tag has to correspond to something.
    #expect(dated.admit(["ETag": "W/\"b\"", "Last-Modified": date(0)], at: start / 1000))
    #expect(!dated.admit(["ETag": "W/\"b\""], at: start / 1000))
    #expect(!dated.admit(["ETag": "\"b\"", "Last-Modified": date(0)], at: start / 1000))
  }

  @Test("fields that no-cache names are kept from no answer, whichever of both names them")
  func uncachedFields() throws {
    let named: HeaderFields = ["Cache-Control": "max-age=9, no-cache=\"b\""]
    #expect(try updated(["B": "1", "C": "1"], named).fields["B"] == nil)
    #expect(try updated(named, ["B": "2", "C": "2"]).fields["B"] == nil)
    #expect(try updated(named, ["B": "2", "C": "2"]).fields["C"] == "2")
    // It is named no more.
    #expect(try updated(named, ["B": "2", "Cache-Control": "max-age=9"]).fields["B"] == "2")
    // Fields that decide when the entry is used stay.
    #expect(
      try updated(["Vary": "Foo", "ETag": "\"a\""], ["Cache-Control": "no-cache=\"vary, etag\""]).fields[
        "Vary"] == "Foo")
  }

  @Test(
    arguments: [
      ([:], .nothing), (["ETag": "\"b\""], .remove), (["ETag": "\"a\"", "Content-Length": "10"], .update),
      (["Content-Length": "11"], .remove), (["Content-Length": "10"], .nothing),
      (["Last-Modified": date(-5)], .nothing),
      (["ETag": "\"a\"", "Content-Length": "11", "Content-Encoding": "gzip"], .update),
      (["Last-Modified": date(-1)], .remove), (["ETag": "\"a\"", "Vary": "Accept"], .remove),
    ] as [(HeaderFields, Freshening.AfterHead)])
  func anAnswerToHeadFreshens(_ fields: HeaderFields, _ effect: Freshening.AfterHead) throws {
    let entry = try stored(["ETag": "\"a\"", "Content-Length": "10", "Last-Modified": date(-5)])
    #expect(Freshening.afterHead(entry, status: 200, fields) == effect)
    #expect(Freshening.afterHead(entry, status: 410, fields) == .nothing)
  }

  /// Of a response without a tag nothing is known that a tag could be compared with.
  @Test func anAnswerToHeadBringsNoFirstTag() throws {
    let tag: HeaderFields = ["ETag": "\"b\""]
    let untagged = try stored(["Last-Modified": date(-5)])
    #expect(try Freshening.afterHead(stored([:]), status: 200, tag) == .nothing)
    #expect(Freshening.afterHead(untagged, status: 200, tag) == .nothing)
    #expect(Freshening.afterHead(untagged, status: 200, ["Last-Modified": date(-5)]) == .update)
    #expect(!untagged.terms.validators.admit(tag, at: start / 1000))
    #expect(
      untagged.terms.validators.admit(["ETag": "W/\"b\"", "Last-Modified": date(-5)], at: start / 1000))
  }

  @Test(arguments: ["*", "W/*", "a, b", "\"a\", \"b\"", "\"", "a\"b", "W/"])
  func whatWouldBeAnotherConditionIsNoTag(_ text: String) {
    #expect(EntityTag(text) == nil)
    #expect(Validators(["ETag": text]).conditions["If-None-Match"] == nil)
  }
}
