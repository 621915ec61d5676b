import Testing

@testable import NetOptRouting

@Suite struct JSONPathTests {
  @Test("a path is written as in RFC 9535")
  func notation() {
    let path = JSONPath().key("hosts").key("a.example").key("endpoints").index(3).key("ip")
    #expect(path.description == "$.hosts[\"a.example\"].endpoints[3].ip")
  }

  @Test(
    "a key that is no plain name is quoted, and its control characters are replaced",
    arguments: [
      ("a", "$.a"), ("_a", "$._a"), ("A", "$.A"), ("", "$[\"\"]"), ("a-b", "$[\"a-b\"]"), ("1", "$[\"1\"]"),
      ("a1", "$.a1"),
      ("a\"b\\", "$[\"a\\\"b\\\\\"]"), ("a\n\u{1b}[2J", "$[\"a\u{fffd}\u{fffd}[2J\"]"), ("é", "$[\"é\"]"),
      ("@", "$[\"@\"]"), ("[", "$[\"[\"]"),
    ])
  func quotedKeys(_ name: String, _ path: String) {
    #expect(JSONPath().key(name).description == path)
  }

  @Test("a long key is cut to 200 characters and an ellipsis")
  func cutsLongNames() {
    let path = JSONPath().key(String(repeating: "-", count: 100_000)).description
    #expect(path.count == 206)
    #expect(path.hasSuffix("-…\"]"))
  }
}
