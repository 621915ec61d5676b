import Foundation
import NetOptCore
import Testing

/// The search for texts that Swift compares or searches slowly: texts with long runs of combining marks or
/// flags.
@Suite struct SlowTextTests {
  private func hasLongRun(_ text: String) -> Bool {
    Array(text.utf8).withUnsafeBytes { SlowText.hasLongRun($0) }
  }

  @Test(
    "hasLongRun finds more than 30 marks in a row, at any place and of any class",
    arguments: [
      "\u{301}", "\u{316}", "\u{344}", "\u{f71}", "\u{f73}", "\u{f75}", "\u{f81}", "\u{e0100}\u{1d165}",
    ])
  func runs(mark: String) {
    // U+E0100, a variation selector, has the combining class 0 and does not count as a mark.
    let marks = mark.unicodeScalars.filter { $0 != "\u{e0100}" }.map { String($0) }.joined()
    for start in 0..<20 {
      let before = String(repeating: "a", count: start)
      #expect(!hasLongRun(before + String(repeating: marks, count: 30) + "b" + marks))
      #expect(hasLongRun(before + String(repeating: marks, count: 31)))
    }
  }

  @Test("hasLongRun finds more than 600 regional indicators in a row, at any place")
  func flags() {
    for start in 0..<20 {
      let before = String(repeating: "a", count: start)
      // 600 regional indicators, the longest run that is allowed.
      let most = String(repeating: "\u{1f1e6}\u{1f1ff}", count: 300)
      #expect(!hasLongRun(before + most + "b" + most))
      #expect(hasLongRun(before + most + "\u{1f1ec}"))
    }
  }

  @Test(
    "hasLongRun finds nothing in ordinary texts",
    arguments: [
      "", "a", "text/html; charset=utf-8", "é ü ñ", "한국어", "ཧཱུྃ", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "y\u{323}\u{301}\u{304}", "🇩🇪🇫🇷",
    ])
  func ordinary(text: String) { #expect(!hasLongRun(text)) }

  @Test(
    "hasLongRun finds nothing in invalid UTF-8, and the same as in the repaired text",
    arguments: UInt64(1)...4)
  func noText(seed: UInt64) {
    let bytes = [UInt8](repeating: 0xcc, count: 1000)
    #expect(!bytes.withUnsafeBytes { SlowText.hasLongRun($0) })
    var random = SplitMix64(seed: seed)
    let pieces: [[UInt8]] = [
      [0xcc], [0xcc, 0x81], [0x81], [0xf0, 0x9f], [0xf0, 0x9f, 0x87, 0xa6], [0x61], [0xff],
    ]
    for _ in 0..<2000 {
      let most = random.isOne(in: 2) ? 2 : pieces.count
      let length = random.isOne(in: 2) ? 40 : 700
      let frequent = pieces[random.isOne(in: 2) ? 1 : 4]
      let bytes = (0..<length).flatMap { _ in
        random.isOne(in: 60) ? pieces[Int(random.below(UInt64(most)))] : frequent
      }
      let text = String(decoding: bytes, as: UTF8.self)
      #expect(bytes.withUnsafeBytes { SlowText.hasLongRun($0) } == hasLongRun(text))
    }
  }

  @Test("withoutLongRuns replaces all marks or flags of a text with a long run, and changes no other text")
  func withoutLongRuns() {
    for scalar in ["\u{301}", "\u{1f1e6}"] {
      let run = String(repeating: scalar, count: 100_000)
      let cleaned = SlowText.withoutLongRuns("a\(run)b")
      #expect(cleaned == "a" + String(repeating: "\u{fffd}", count: 100_000) + "b")
      #expect(!SlowText.hasLongRun(cleaned))
    }
    for text in ["", "a", "e\u{301}", "🇩🇪"] {
      #expect(Array(SlowText.withoutLongRuns(text).utf8) == Array(text.utf8))
    }
  }

  @Test("hasLongRun(inJSON:) finds marks written as they are, as escapes or both", arguments: UInt64(1)...4)
  func json(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let marks = ["\u{301}", "\\u0316", "\\ud834\\uDD65", "\u{1d165}"]
    let others = ["a", #"\\"#, #"\\u0301"#, #"\""#, #"\u0061"#, #"\n"#, "u0301"]
    // The number of texts with a long run.
    var found = 0
    for _ in 0..<2000 {
      var json = ""
      for _ in 0...random.below(4) {
        for _ in 0..<(25 + random.below(10)) {
          json +=
            random.isOne(in: 40) ? others[Int(random.below(7))] : marks[Int(random.below(4))]
        }
        json += others[Int(random.below(7))] + "x"
      }
      // Foundation decodes the escapes, and `hasLongRun` searches the decoded string.
      let expected = hasLongRun(try JSONDecoder().decode([String].self, from: Data("[\"\(json)\"]".utf8))[0])
      found += expected ? 1 : 0
      #expect(SlowText.hasLongRun(inJSON: Array("{\"k\":\"\(json)\"}".utf8)) == expected, "\(json)")
    }
    // The test means something only if many texts have a long run and many have none.
    #expect((200...1900).contains(found))
  }

  @Test(
    "URLs and field values with a long run are refused at once", .timeLimit(.minutes(1)),
    arguments: ["https://aRUN/", "htRUN://a.test/", "https://a.test/RUN", "https://a.test/?q=RUN"],
    [["\u{301}", "\u{316}"], ["\u{1f1e6}"]])
  func requests(url: String, scalars: [String]) {
    let run = scalars.map { String(repeating: $0, count: 10_000) }.joined()
    let error = #expect(throws: NetOptError.self) { try HTTPURL(url.replacing("RUN", with: run)) }
    #expect(error?.code == .invalidURL && error?.message.contains("combining marks") == true)
    let field = HeaderField("X", "a\(run)")
    #expect(HeaderFields.fault(of: field)?.contains("combining marks") == true)
    #expect(Set([field, field]).count == 1)
  }

  @Test("hasLongRun treats every scalar that decomposes into marks only as a mark")
  func allScalars() {
    for value in UInt32(0)...0x10_ffff {
      guard let scalar = Unicode.Scalar(value) else { continue }
      // Whether Swift may reorder all scalars of the decomposition when it compares strings.
      let moves = String(scalar).decomposedScalars.allSatisfy {
        $0.properties.canonicalCombiningClass != .notReordered
      }
      guard moves else { continue }
      #expect(hasLongRun(String(repeating: String(scalar), count: 31)), "\(value)")
    }
  }
}

extension String {
  /// The scalars of the string in Normalization Form D. Two strings are equal if these scalars are equal.
  fileprivate var decomposedScalars: [Unicode.Scalar] {
    decomposedStringWithCanonicalMapping.unicodeScalars.map { $0 }
  }
}
