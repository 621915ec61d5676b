import NetOptCore
import Testing

@Suite struct ByteSearchTests {
  @Test(
    "the search finds what firstRange(of:) finds, in texts, parts of texts and arrays",
    arguments: UInt64(1)...4)
  func reference(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    func text(_ most: UInt64) -> String {
      String(
        (0..<random.below(most)).map { _ in random.isOne(in: 20) ? "é" : random.isOne(in: 2) ? "a" : "b" })
    }
    var found = 0
    for _ in 0..<20_000 {
      let (whole, wanted) = (text(30), text(4) + "a")
      let expected = whole.utf8.firstRange(of: wanted.utf8)
      found += expected == nil ? 0 : 1
      #expect(whole.utf8.firstRange(ofBytes: wanted) == expected)
      let bytes = Array(whole.utf8)
      #expect(bytes.firstRange(ofBytes: wanted) == bytes.firstRange(of: Array(wanted.utf8)))
      let part = bytes.dropFirst(Int(random.below(5)))
      #expect(part.firstRange(ofBytes: wanted) == part.firstRange(of: Array(wanted.utf8)))
      let rest = whole.dropFirst(Int(random.below(5)))
      #expect(rest.utf8.firstRange(ofBytes: wanted) == rest.utf8.firstRange(of: wanted.utf8))
      #expect(
        bytes.reversed().firstRange(ofBytes: wanted) == bytes.reversed().firstRange(of: Array(wanted.utf8)))
    }
    #expect((2_000...18_000).contains(found))
  }

  @Test(
    "the lower case changes the letters A to Z only, in texts and parts of texts", arguments: UInt64(1)...2)
  func lowerCase(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let pieces = ["A", "Z", "a", "@", "[", "É", "\u{212a}", "e\u{301}", "0"]
    for _ in 0..<5_000 {
      let text = (0..<random.below(40)).map { _ in pieces[Int(random.below(9))] }.joined()
      let expected = text.utf8.map { (0x41...0x5a).contains($0) ? $0 + 0x20 : $0 }
      #expect(Array(text.loweredASCII.utf8) == expected)
      #expect(
        Array(text.dropFirst().loweredASCII.utf8) == Array(expected.dropFirst(text.first?.utf8.count ?? 0)))
    }
  }
}
