import Testing

@testable import NetOptCore

@Suite struct EditDistanceTests {
  @Test(
    "the distance counts inserted, removed, changed and swapped letters, in both directions",
    arguments: [
      ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("get", "get", 0), ("gte", "get", 1), ("prob", "probe", 1),
      ("porbe", "probe", 1), ("kitten", "sitting", 3), ("ca", "abc", 3), ("iplsit", "iplist", 1),
    ])
  func countsLetters(a: String, b: String, distance: Int) {
    #expect(EditDistance.between(a, b) == distance)
    #expect(EditDistance.between(b, a) == distance)
  }

  @Test(
    "closest returns the most similar word, or nothing if no word is similar enough",
    arguments: [
      ("gte", "get"), ("porb", "probe"), ("halp", "help"), ("xyz", nil), ("g", nil), ("", nil),
      (String(repeating: "get", count: 30), nil),
    ] as [(String, String?)])
  func closest(word: String, meant: String?) {
    #expect(EditDistance.closest(to: word, among: ["get", "probe", "help"]) == meant)
  }
}
