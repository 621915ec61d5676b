import NetOptCaching
import NetOptCore
import TestTools
import Testing

struct VaryTests {
  /// A stored response with this `Vary`, which was fetched by a request with these fields.
  private func entry(_ vary: String, _ request: HeaderFields) throws -> CacheEntry {
    let fields: HeaderFields = ["Cache-Control": "max-age=100", "Vary": vary]
    return try stored(fields, selectors: Vary(fields).selectors(of: asked(request)))
  }

  @Test(
    "a stored response is a hit only if the fields that Vary names match",
    arguments: [
      (["Foo": "1"], ["Foo": "1"], true), (["Foo": "1"], ["Foo": "2"], false), (["Foo": "1"], [:], false),
      ([:], ["Foo": "1"], false), ([:], [:], true), (["foo": "1"], ["FOO": "1"], true),
      (["Foo": "1", "Other": "2"], ["Foo": "1", "Other": "3"], true), (["Foo": ""], [:], false),
      (["Foo": "1, 2"], ["Foo": "1", "foo": "2"], true), (["Foo": "1, 2"], ["Foo": " 1, 2 "], true),
      (["Foo": "1,2"], ["Foo": "1, 2"], false),
      (["Foo": "a"], ["Foo": "A"], false), (["Foo": "\"1, 2\""], ["Foo": "\"1,2\""], false),
    ] as [(HeaderFields, HeaderFields, Bool)])
  func matchingFields(_ first: HeaderFields, _ second: HeaderFields, _ matches: Bool) throws {
    let word = try decision(second, on: entry("Foo", first)).word
    #expect(word == (matches ? "hit" : "fetch:vary-miss"))
  }

  @Test("Accept-Language matches in any case and spacing, but only in the same order")
  func languages() throws {
    let german = try entry("Accept-Language", ["Accept-Language": "en, de"])
    #expect(try decision(["Accept-Language": "eN,De"], on: german).word == "hit")
    #expect(try decision(["Accept-Language": " en ,de"], on: german).word == "hit")
    // The order matters to servers.
    #expect(try decision(["Accept-Language": "de, en"], on: german).word == "fetch:vary-miss")
  }

  /// Pieces of random values. Many of them are equal in Swift, or equal when lowercased, although their bytes
  /// differ.
  private static let pieces = [
    "e\u{301}", "é", "K", "\u{212A}", "k", "Å", "\u{212B}", "A\u{30A}", "Ω", "\u{2126}", ";", "\u{37E}", "a",
    "A", ",", ",\u{301}", " ",
    "\t", "İ", "ß", "ẞ", "\u{200D}",
  ]

  /// The form in which the cache compares values, implemented independently for the test. The form of a
  /// value is its bytes without spaces and tabs at both ends. A list is split at its commas first, and the
  /// ASCII letters of its members become lowercase.
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

  @Test(
    "values match only if their bytes are equal, apart from the case of languages",
    arguments: ["Accept-Language", "Accept", "X-Thing"])
  func valueBytes(_ name: String) throws {
    var random = SplitMix64(seed: 1)
    func value() -> String {
      (0..<Int.random(in: 1...3, using: &random)).map { _ in Self.pieces.randomElement(using: &random) ?? "" }
        .joined()
    }
    var matches = 0
    // With a sanitizer, the test takes many times as long. The rule uses no pointers and one thread.
    let rounds = Sanitizer.isOn ? 2000 : 20_000
    for _ in 0..<rounds {
      let (one, other) = (value(), value())
      let isSame =
        Self.compared(one, isList: name == "Accept-Language")
        == Self.compared(other, isList: name == "Accept-Language")
      let word = try decision([name: other], on: entry(name, [name: one])).word
      #expect(word == (isSame ? "hit" : "fetch:vary-miss"), "\(Array(one.utf8)) \(Array(other.utf8))")
      if isSame { matches += 1 }
    }
    #expect(matches > rounds / 200)
  }

  /// Swift treats a comma and a combining accent after it as one character. A parser that splits the text
  /// by characters would not find the comma.
  @Test("a Vary with a combining accent counts as *")
  func accents() {
    #expect(Vary(["Vary": "Foo,\u{301} *"]) == .everything)
    #expect(Vary(["Vary": "Foo, bar\u{301}"]) == .everything)
    #expect(Vary(["Vary": "*,\u{301}"]) == .everything)
  }

  @Test(
    "values of megabytes match by their bytes and are compared at once", .timeLimit(.minutes(1)),
    arguments: ["Accept-Language", "Accept", "X-Thing"])
  func longValues(_ name: String) throws {
    let commas = String(repeating: ",", count: 4 << 20)
    let stored = try entry(name, [name: commas])
    // The store keeps a digest of the long value: 64 hexadecimal digits, after a NUL in some fields.
    #expect(stored.selectors.allSatisfy { ($0.value?.utf8.count ?? 0) <= 65 })
    #expect(try decision([name: commas], on: stored).word == "hit")
    #expect(try decision([name: commas + ","], on: stored).word == "fetch:vary-miss")
    // A request whose short value is the text of the digest must not match the long value.
    let text = stored.selectors[0].value?.drop { $0 == "\0" }
    #expect(try decision([name: String(try #require(text))], on: stored).word == "fetch:vary-miss")
  }

  @Test("Accept values that differ in case do not match")
  func caseOfAccept() throws {
    let full = try entry("Accept", ["Accept": "a/b;profile=\"https://x.test/Full\""])
    let word = try decision(["Accept": "a/b;profile=\"https://x.test/full\""], on: full).word
    #expect(word == "fetch:vary-miss")
  }

  @Test("of several stored responses, the one whose selectors match is used")
  func selection() throws {
    let one = try entry("Foo", ["Foo": "1"])
    let two = try entry("Foo", ["Foo": "2"])
    let selected = CachePolicy.selected([two, one], for: try asked(["Foo": "1"]))
    #expect(selected === one)
  }

  @Test(
    "a response with * in Vary is not stored", arguments: ["*", "*, *", ", *", "Foo, *", "*, Foo", " * "])
  func asterisk(_ vary: String) throws {
    #expect(Vary(["Vary": vary]) == .everything)
    let (isStored, section) = try storing(["Cache-Control": "max-age=100", "Vary": vary])
    #expect(!isStored)
    #expect(section == "RFC 9111, section 4.1")
  }

  @Test("a response whose Vary names more than 64 different fields is not stored")
  func tooManyNames() throws {
    // A `Vary` with `count` names. Each name occurs twice, in different case.
    func vary(_ count: Int) -> String { (0..<count).map { "Foo-\($0), foo-\($0)" }.joined(separator: ", ") }
    let most = Vary.mostNames
    #expect(Vary(["Vary": vary(most)]) == .fields((0..<most).map { "foo-\($0)" }.sorted()))
    #expect(Vary(["Vary": vary(most + 1)]) == .everything)
    #expect(try storing(["Cache-Control": "max-age=100", "Vary": vary(most)]).0)
    #expect(try !storing(["Cache-Control": "max-age=100", "Vary": vary(most + 1)]).0)
  }

  /// The disk store writes the selectors to the disk, so they must not contain secrets.
  @Test("the selectors of credential fields do not contain the credentials")
  func credentials() throws {
    let request: HeaderFields = ["Authorization": "Bearer hush", "Cookie": "sid=hush", "Accept": "text/hush"]
    let selectors = try Vary(["Vary": "Accept, Authorization, Cookie"]).selectors(of: asked(request))
    #expect(selectors.map(\.name) == ["accept", "authorization", "cookie"])
    #expect(selectors.map { $0.value?.contains("hush") } == [true, false, false])
    #expect(selectors[1].value != selectors[2].value)
  }

  @Test("Vary combines the names of all its lines, sorted and in lowercase")
  func severalLines() {
    #expect(Vary(["Vary": "B, a", "vary": ", A ,"]) == .fields(["a", "b"]))
    #expect(Vary(["Vary": ""]) == .nothing)
  }
}
