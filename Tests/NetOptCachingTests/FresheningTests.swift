import NetOptCaching
import NetOptCore
import Testing

struct FresheningTests {
  /// The entry that results from a 304 with `newFields`, for a stored response with the fields `old`. The
  /// request for the 304 was sent 5 s after `start`, and the 304 was received 0.1 s later.
  private func updated(_ old: HeaderFields, _ newFields: HeaderFields) throws -> CacheEntry {
    Freshening.updated(
      try stored(old), with: newFields, for: try asked(["Foo": "1"]), requested: start + 5000,
      received: start + 5100)
  }

  @Test("a 304 updates all fields except those of the body and of the connection")
  func updatedFields() throws {
    let old: HeaderFields = [
      "A": "1", "B": "1", "b": "2", "Content-Length": "10", "Content-Type": "text/plain", "Age": "50",
      "Cache-Control": "max-age=1",
    ]
    let newFields: HeaderFields = [
      "b": "3", "C": "4", "Content-Length": "0", "Content-Encoding": "gzip", "Content-Range": "x",
      "Cache-Control": "max-age=9", "Connection": "close, d", "d": "5", "Set-Cookie": "a=2",
    ]
    let entry = try updated(old, newFields)
    #expect(
      entry.fields == [
        "A": "1", "Content-Length": "10", "Content-Type": "text/plain", "b": "3", "C": "4",
        "Cache-Control": "max-age=9", "Date": date(5),
      ])
    #expect(entry.body == Array("0123456789".utf8))
    #expect(entry.terms.age(at: start + 5100) == 100)
    #expect(entry.terms.freshness.lifetime == 9000)
  }

  @Test("an updated entry is not kept when its fields exceed the limits of one response head")
  func growingFields() throws {
    // Fields with the names "Foo-N", one for each number N in `names`, with values of `bytes` bytes.
    func newFields(_ names: Range<Int>, _ bytes: Int) -> HeaderFields {
      HeaderFields(names.map { HeaderField("Foo-\($0)", String(repeating: "a", count: bytes)) })
    }
    var many = try stored([:])
    var large = try stored([:])
    for round in 0..<4 {
      let names = 900 * round..<900 * (round + 1)
      many = Freshening.updated(
        many, with: newFields(names, 1), for: try asked([:]), requested: start, received: start)
      #expect(Freshening.mayBeStored(many, after: [:]) == (many.fields.count <= 2000))
      large = Freshening.updated(
        large, with: newFields(round..<round + 1, 100_000), for: try asked([:]), requested: start,
        received: start)
      #expect(Freshening.mayBeStored(large, after: [:]) == (round < 2))
    }
    #expect(many.fields.count > 3600)
  }

  @Test("an updated entry is not kept when more than 64 fields select it")
  func growingSelectors() throws {
    // A `Vary` with the names "Foo-N", one for each number N in `names`.
    func vary(_ names: Range<Int>) -> HeaderFields {
      ["Vary": names.map { "Foo-\($0)" }.joined(separator: ", ")]
    }
    var entry = try stored(vary(0..<40))
    #expect(Freshening.mayBeStored(entry, after: [:]))
    // The first 304 names the fields of the stored `Vary` again. The others name further fields, up to 64 and
    // then 65 in all.
    for (names, isKept) in [(0..<40, true), (40..<64, true), (64..<65, false)] {
      entry = Freshening.updated(
        entry, with: vary(names), for: try asked(["Foo-1": "1"]), requested: start, received: start)
      #expect(entry.selectors.count == names.upperBound)
      #expect(Freshening.mayBeStored(entry, after: [:]) == isKept)
    }
  }

  @Test("the weak tag of decoded content stays weak after a 304 with the strong tag")
  func weakTag() throws {
    #expect(try updated(["ETag": "W/\"a\""], ["ETag": "\"a\""]).fields["ETag"] == "W/\"a\"")
    #expect(try updated(["ETag": "\"a\""], ["ETag": "\"a\""]).fields["ETag"] == "\"a\"")
  }

  @Test("a 304 updates date and selectors, and may forbid storing")
  func updatedTerms() throws {
    // A 304 without `Date` gets the time at which it was received.
    let old = try updated(["Date": date(-5000), "Cache-Control": "max-age=60"], [:])
    #expect(old.terms.age(at: start + 5100) == 100)
    #expect(
      try updated([:], ["Vary": "Foo"]).selectors == Vary(["Vary": "Foo"]).selectors(of: asked(["Foo": "1"])))
    #expect(Freshening.mayBeStored(old, after: [:]))
    for newFields in [["Cache-Control": "no-store"], ["Vary": "*"]] as [HeaderFields] {
      #expect(try !Freshening.mayBeStored(updated([:], newFields), after: newFields))
    }
  }

  @Test(
    "an entry is not kept when Connection or no-cache of a 304 drops its terms",
    arguments: [
      ["Vary": "X-User", "Connection": "Vary"], ["Vary": "*", "Connection": "close, vary"],
      ["Vary": "X-User", "Cache-Control": "max-age=600, no-cache=\"vary\""],
      ["Cache-Control": "no-store", "Connection": "cache-control"],
    ] as [HeaderFields])
  func lostTerms(_ newFields: HeaderFields) throws {
    #expect(try !Freshening.mayBeStored(updated([:], newFields), after: newFields))
    #expect(try Freshening.mayBeStored(updated([:], newFields), after: ["Connection": "close"]))
  }

  /// The origin chose the stored body by the request fields in the stored `Vary`. When the `Vary` of a 304
  /// lacks some of these names, the entry must still not answer requests with other values of the fields.
  @Test(
    "a 304 may add selectors to an entry, and removes none",
    arguments: [[:], ["Vary": ""], ["Vary": "Bar"], ["Vary": "Foo"], ["Vary": "bar, foo"]] as [HeaderFields])
  func keptSelectors(_ newFields: HeaderFields) throws {
    let request = try asked(["Foo": "1", "Bar": "2"])
    let old = Vary(["Vary": "Foo"]).selectors(of: request)
    let entry = Freshening.updated(
      try stored(["Vary": "Foo"], selectors: old), with: newFields, for: request, requested: start + 5000,
      received: start + 5100)
    #expect(Vary.selects(entry, request))
    #expect(try !Vary.selects(entry, asked(["Foo": "2", "Bar": "2"])))
    // Whether the 304 adds the selector `Bar`. A request with another `Bar` then no longer matches the
    // entry.
    let isWider = Vary(newFields) != .nothing && Vary(newFields) != .fields(["foo"])
    #expect(try Vary.selects(entry, asked(["Foo": "1", "Bar": "3"])) != isWider)
  }

  /// netopt replaces bytes that are not UTF-8 by U+FFFD. So a tag with U+FFFD may have had any bytes there.
  @Test(
    "entity tags match only if their bytes are known and equal",
    arguments: [
      ("\"é\"", "\"e\u{301}\""), ("\"K\"", "\"\u{212A}\""), ("\"\u{fffd}\"", "\"\u{fffd}\""),
      ("\"a\"", "\"\u{fffd}\""),
      ("\"\u{fffd}\"", "\"a\""),
    ])
  func tagBytes(_ ours: String, _ theirs: String) throws {
    #expect(EntityTag(ours).map { $0 == EntityTag(theirs) } != true)
    #expect(!Validators(["ETag": ours]).match(["ETag": theirs], at: start / 1000) || EntityTag(ours) == nil)
    let entry = try stored(["ETag": ours, "Cache-Control": "max-age=0"])
    #expect(Freshening.afterHead(entry, status: 200, ["ETag": theirs]) == .remove)
    #expect(try !asked(["If-None-Match": theirs]).conditions.isNotModified(entry))
  }

  @Test("a 304 is accepted with the same tag or none, and rejected with another tag")
  func otherTag() throws {
    #expect(!Validators(["Last-Modified": date(0)]).match(["ETag": "\"\u{fffd}\""], at: start / 1000))
    let validators = Validators(["ETag": "W/\"a\""])
    #expect(validators.match(["ETag": "\"a\""], at: start / 1000))
    #expect(validators.match([:], at: start / 1000))
    #expect(!validators.match(["ETag": "\"b\""], at: start / 1000))
  }

  @Test("a 304 with another Last-Modified is rejected, unless the entity tags match")
  func datesOfA304() {
    let (dated, both) = (
      Validators(["Last-Modified": date(0)]), Validators(["ETag": "\"a\"", "Last-Modified": date(0)])
    )
    for validators in [dated, both] {
      #expect(validators.match(["Last-Modified": date(0)], at: start / 1000))
      #expect(!validators.match(["Last-Modified": date(-60)], at: start / 1000))
      #expect(!validators.match(["Last-Modified": date(60)], at: start / 1000))
      #expect(validators.match([:], at: start / 1000))
    }
    #expect(both.match(["ETag": "\"a\"", "Last-Modified": date(60)], at: start / 1000))
    // `dated` has no tag with which the tag of the 304 could be compared. So the 304 confirms the stored
    // response only if its tag is weak and its date is equal.
    #expect(dated.match(["ETag": "W/\"b\"", "Last-Modified": date(0)], at: start / 1000))
    #expect(!dated.match(["ETag": "W/\"b\""], at: start / 1000))
    #expect(!dated.match(["ETag": "\"b\"", "Last-Modified": date(0)], at: start / 1000))
  }

  @Test("fields that no-cache names, in the stored response or in the 304, are not stored")
  func uncachedFields() throws {
    let named: HeaderFields = ["Cache-Control": "max-age=9, no-cache=\"b\""]
    #expect(try updated(["B": "1", "C": "1"], named).fields["B"] == nil)
    #expect(try updated(named, ["B": "2", "C": "2"]).fields["B"] == nil)
    #expect(try updated(named, ["B": "2", "C": "2"]).fields["C"] == "2")
    // The `Cache-Control` of the 304 replaces the stored one, and does not name the field B.
    #expect(try updated(named, ["B": "2", "Cache-Control": "max-age=9"]).fields["B"] == "2")
    // `no-cache` does not remove the fields that decide whether the entry may answer, such as `Vary`.
    #expect(
      try updated(["Vary": "Foo", "ETag": "\"a\""], ["Cache-Control": "no-cache=\"vary, etag\""]).fields[
        "Vary"] == "Foo")
  }

  @Test(
    "a response to HEAD updates, removes or keeps the stored response",
    arguments: [
      ([:], .nothing), (["ETag": "\"b\""], .remove), (["ETag": "\"a\"", "Content-Length": "10"], .update),
      (["Content-Length": "11"], .remove), (["Content-Length": "10"], .nothing),
      (["Last-Modified": date(-5)], .nothing),
      (["ETag": "\"a\"", "Content-Length": "11", "Content-Encoding": "gzip"], .update),
      (["Last-Modified": date(-1)], .remove), (["ETag": "\"a\"", "Vary": "Accept"], .remove),
    ] as [(HeaderFields, Freshening.AfterHead)])
  func afterHead(_ fields: HeaderFields, _ effect: Freshening.AfterHead) throws {
    let entry = try stored(["ETag": "\"a\"", "Content-Length": "10", "Last-Modified": date(-5)])
    #expect(Freshening.afterHead(entry, status: 200, fields) == effect)
    #expect(Freshening.afterHead(entry, status: 410, fields) == .nothing)
  }

  /// The stored response has no tag with which the tag of the new response could be compared.
  @Test("a first entity tag does not confirm a stored response without a tag")
  func firstTag() throws {
    let tag: HeaderFields = ["ETag": "\"b\""]
    let untagged = try stored(["Last-Modified": date(-5)])
    #expect(try Freshening.afterHead(stored([:]), status: 200, tag) == .nothing)
    #expect(Freshening.afterHead(untagged, status: 200, tag) == .nothing)
    #expect(Freshening.afterHead(untagged, status: 200, ["Last-Modified": date(-5)]) == .update)
    #expect(!untagged.terms.validators.match(tag, at: start / 1000))
    #expect(
      untagged.terms.validators.match(["ETag": "W/\"b\"", "Last-Modified": date(-5)], at: start / 1000))
  }

  /// As the value of `If-None-Match`, none of these texts would mean exactly one tag. For example, `*`
  /// matches every response, and a comma separates two tags. So such an `ETag` is not used as a validator.
  @Test(
    "text that would make another condition is not an entity tag",
    arguments: ["*", "W/*", "a, b", "\"a\", \"b\"", "\"", "a\"b", "W/"])
  func invalidTags(_ text: String) {
    #expect(EntityTag(text) == nil)
    #expect(Validators(["ETag": text]).conditions["If-None-Match"] == nil)
  }
}
