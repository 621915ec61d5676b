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
