import NetOptCaching
import NetOptCore
import Testing

struct VaryTests {
  private func entry(_ vary: String, _ request: HeaderFields) throws -> CacheEntry {
    let fields: HeaderFields = ["Cache-Control": "max-age=100", "Vary": vary]
    return try stored(fields, selectors: Vary(fields).selectors(of: asked(request)))
  }

  @Test(
    arguments: [
      (["Foo": "1"], ["Foo": "1"], true), (["Foo": "1"], ["Foo": "2"], false), (["Foo": "1"], [:], false),
      ([:], ["Foo": "1"], false), ([:], [:], true), (["foo": "1"], ["FOO": "1"], true),
      (["Foo": "1", "Other": "2"], ["Foo": "1", "Other": "3"], true), (["Foo": ""], [:], false),
      (["Foo": "1, 2"], ["Foo": "1", "foo": "2"], true), (["Foo": "1, 2"], ["Foo": " 1, 2 "], true),
      (["Foo": "1,2"], ["Foo": "1, 2"], false),
      (["Foo": "a"], ["Foo": "A"], false), (["Foo": "\"1, 2\""], ["Foo": "\"1,2\""], false),
    ] as [(HeaderFields, HeaderFields, Bool)])
  func theSelectedFieldsHaveToMatch(_ first: HeaderFields, _ second: HeaderFields, _ matches: Bool) throws {
    let word = try decision(second, on: entry("Foo", first)).word
    #expect(word == (matches ? "hit" : "fetch:vary-miss"))
  }

  @Test func languagesMeanTheSameInAnyCase() throws {
    let german = try entry("Accept-Language", ["Accept-Language": "en, de"])
    #expect(try decision(["Accept-Language": "eN,De"], on: german).word == "hit")
    #expect(try decision(["Accept-Language": " en ,de"], on: german).word == "hit")
    // Servers look at the order.
    #expect(try decision(["Accept-Language": "de, en"], on: german).word == "fetch:vary-miss")
  }

  /// Strings that are equal in Swift, or equal when lowercased, although their bytes differ.
  private static let pieces = [
    "e\u{301}", "é", "K", "\u{212A}", "k", "Å", "\u{212B}", "A\u{30A}", "Ω", "\u{2126}", ";", "\u{37E}", "a",
    "A", ",", ",\u{301}", " ",
    "\t", "İ", "ß", "ẞ", "\u{200D}",
  ]

  /// What is compared of a value, written anew for the test: bytes, of a list of names without the spaces around each, in small letters.
  private static func compared(_ value: String, isList: Bool) -> [[UInt8]] {
    let parts =
      isList
      ? value.utf8.split(separator: 0x2c, omittingEmptySubsequences: false).map(Array.init)
      : [Array(value.utf8)]
    return parts.map { part in
      var bytes = part
      while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
      while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
      return isList ? bytes.map { 0x41 <= $0 && $0 <= 0x5a ? $0 + 0x20 : $0 } : bytes
    }
  }

  @Test(arguments: ["Accept-Language", "Accept", "X-Thing"])
  func valuesAreComparedByTheirBytes(_ name: String) throws {
    var random = SplitMix64(seed: 1)
    func value() -> String {
      (0..<Int.random(in: 1...3, using: &random)).map { _ in Self.pieces.randomElement(using: &random) ?? "" }
        .joined()
    }
    var matches = 0
    for _ in 0..<20_000 {
      let (one, other) = (value(), value())
      let isSame =
        Self.compared(one, isList: name == "Accept-Language")
        == Self.compared(other, isList: name == "Accept-Language")
      let word = try decision([name: other], on: entry(name, [name: one])).word
      #expect(word == (isSame ? "hit" : "fetch:vary-miss"), "\(Array(one.utf8)) \(Array(other.utf8))")
      if isSame { matches += 1 }
    }
    #expect(matches > 100)
  }

  @Test func anAccentBehindACommaHidesNoName() {
    #expect(Vary(["Vary": "Foo,\u{301} *"]) == .everything)
    #expect(Vary(["Vary": "Foo, bar\u{301}"]) == .everything)
    #expect(Vary(["Vary": "*,\u{301}"]) == .everything)
  }

  @Test func parametersOfTypesMayMeanSomethingElseInAnotherCase() throws {
    let full = try entry("Accept", ["Accept": "a/b;profile=\"https://x.test/Full\""])
    let word = try decision(["Accept": "a/b;profile=\"https://x.test/full\""], on: full).word
    #expect(word == "fetch:vary-miss")
  }

  @Test func theNewestOfSeveralIsTaken() throws {
    let one = try entry("Foo", ["Foo": "1"])
    let two = try entry("Foo", ["Foo": "2"])
    let selected = CachePolicy.selected([two, one], for: try asked(["Foo": "1"]))
    #expect(selected === one)
  }

  @Test(arguments: ["*", "*, *", ", *", "Foo, *", "*, Foo", " * "])
  func anAsteriskFitsNothing(_ vary: String) throws {
    #expect(Vary(["Vary": vary]) == .everything)
    let (isStored, section) = try storing(["Cache-Control": "max-age=100", "Vary": vary])
    #expect(!isStored)
    #expect(section == "RFC 9111, section 4.1")
  }

  @Test("a response that depends on more than 64 fields is not stored, however often one of them is named")
  func tooManyNames() throws {
    func vary(_ count: Int) -> String { (0..<count).map { "Foo-\($0), foo-\($0)" }.joined(separator: ", ") }
    let most = Vary.mostNames
    #expect(Vary(["Vary": vary(most)]) == .fields((0..<most).map { "foo-\($0)" }.sorted()))
    #expect(Vary(["Vary": vary(most + 1)]) == .everything)
    #expect(try storing(["Cache-Control": "max-age=100", "Vary": vary(most)]).0)
    #expect(try !storing(["Cache-Control": "max-age=100", "Vary": vary(most + 1)]).0)
  }

  /// Selectors are written to the disk.
  @Test func whatMayBeACredentialIsNotKept() throws {
    let request: HeaderFields = ["Authorization": "Bearer hush", "Cookie": "sid=hush", "Accept": "text/hush"]
    let selectors = try Vary(["Vary": "Accept, Authorization, Cookie"]).selectors(of: asked(request))
    #expect(selectors.map(\.name) == ["accept", "authorization", "cookie"])
    #expect(selectors.map { $0.value?.contains("hush") } == [true, false, false])
    #expect(selectors[1].value != selectors[2].value)
  }

  @Test func namesAreThoseOfAllLines() {
    #expect(Vary(["Vary": "B, a", "vary": ", A ,"]) == .fields(["a", "b"]))
    #expect(Vary(["Vary": ""]) == .nothing)
  }
}
