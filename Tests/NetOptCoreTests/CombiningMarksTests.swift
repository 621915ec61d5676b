import Foundation
import NetOptCore
import Testing

/// The search for texts that are slow to compare.
@Suite struct CombiningMarksTests {
  private func hasLongRun(_ text: String) -> Bool {
    Array(text.utf8).withUnsafeBytes { CombiningMarks.hasLongRun($0) }
  }

  @Test(
    "hasLongRun finds more than 30 marks in a row, at any place and of any class",
    arguments: [
      "\u{301}", "\u{316}", "\u{344}", "\u{f71}", "\u{f73}", "\u{f75}", "\u{f81}", "\u{e0100}\u{1d165}",
    ])
  func runs(mark: String) {
    let marks = mark.unicodeScalars.filter { $0 != "\u{e0100}" }.map { String($0) }.joined()
    for start in 0..<20 {
      let before = String(repeating: "a", count: start)
      #expect(!hasLongRun(before + String(repeating: marks, count: 30) + "b" + marks))
      #expect(hasLongRun(before + String(repeating: marks, count: 31)))
    }
  }

  @Test(
    "hasLongRun finds nothing in ordinary texts",
    arguments: ["", "a", "text/html; charset=utf-8", "é ü ñ", "한국어", "ཧཱུྃ", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "y\u{323}\u{301}\u{304}"])
  func ordinary(text: String) { #expect(!hasLongRun(text)) }

  @Test("hasLongRun finds nothing in invalid UTF-8")
  func noText() {
    let bytes = [UInt8](repeating: 0xcc, count: 1000)
    #expect(!bytes.withUnsafeBytes { CombiningMarks.hasLongRun($0) })
  }

  @Test("hasLongRun(inJSON:) finds marks written as they are, as escapes or both", arguments: UInt64(1)...4)
  func json(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let marks = ["\u{301}", "\\u0316", "\\ud834\\uDD65", "\u{1d165}"]
    let others = ["a", #"\\"#, #"\\u0301"#, #"\""#, #"\u0061"#, #"\n"#, "u0301"]
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
      let expected = hasLongRun(try JSONDecoder().decode([String].self, from: Data("[\"\(json)\"]".utf8))[0])
      found += expected ? 1 : 0
      #expect(CombiningMarks.hasLongRun(inJSON: Array("{\"k\":\"\(json)\"}".utf8)) == expected, "\(json)")
    }
    #expect((200...1900).contains(found))
  }

  @Test(
    "URLs and field values with a long run of marks are refused at once", .timeLimit(.minutes(1)),
    arguments: ["https://aMARKS/", "htMARKS://a.test/", "https://a.test/MARKS", "https://a.test/?q=MARKS"])
  func requests(url: String) {
    let marks = String(repeating: "\u{301}", count: 100_000) + String(repeating: "\u{316}", count: 100_000)
    let error = #expect(throws: NetOptError.self) { try HTTPURL(url.replacing("MARKS", with: marks)) }
    #expect(error?.code == .invalidURL && error?.message.contains("combining marks") == true)
    let field = HeaderField("X", "a\(marks)")
    #expect(HeaderFields.fault(of: field)?.contains("combining marks") == true)
    #expect(Set([field, field]).count == 1)
  }

  @Test("hasLongRun treats every scalar that decomposes into marks only as a mark")
  func allScalars() {
    for value in UInt32(0)...0x10_ffff {
      guard let scalar = Unicode.Scalar(value) else { continue }
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
