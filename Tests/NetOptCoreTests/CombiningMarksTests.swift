import NetOptCore
import NetOptTestSupport
import Testing

/// Texts that take long to compare.
@Suite struct CombiningMarksTests {
  private func hasLongRun(_ text: String) -> Bool {
    Array(text.utf8).withUnsafeBytes { CombiningMarks.hasLongRun($0) }
  }

  @Test(
    "a run of more than 30 marks is found, at any place and of any class",
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
    "ordinary texts have none",
    arguments: ["", "a", "text/html; charset=utf-8", "é ü ñ", "한국어", "ཧཱུྃ", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "y\u{323}\u{301}\u{304}"])
  func ordinary(text: String) { #expect(!hasLongRun(text)) }

  @Test("what is not UTF-8 has none") func noText() {
    let bytes = [UInt8](repeating: 0xcc, count: 1000)
    #expect(!bytes.withUnsafeBytes { CombiningMarks.hasLongRun($0) })
  }

  @Test("texts without a long run are compared in little time, however they were drawn")
  func time() {
    var random = SplitMix64(seed: 5)
    // All scalars that a decomposition moves, and letters.
    let scalars = (0x20...0x1_ffff).compactMap { Unicode.Scalar($0 as UInt32) }.filter {
      $0.properties.canonicalCombiningClass != .notReordered || (0xf00...0xfff).contains($0.value)
        || (0x1f00...0x1fff).contains($0.value) || $0.isASCII
    }
    for _ in 0..<50 {
      let few = (0..<3).compactMap { _ in scalars.randomElement(using: &random) }
      var text = String.UnicodeScalarView()
      for _ in 0..<30_000 { text.append(few.randomElement(using: &random) ?? "a") }
      let string = String(text)
      guard !hasLongRun(string) else { continue }
      let clock = ContinuousClock()
      let start = clock.now
      #expect(string + "a" != string + "b")
      // 13 s where the square of the length counts.
      #expect(clock.now - start < .milliseconds(500))
    }
  }
}
