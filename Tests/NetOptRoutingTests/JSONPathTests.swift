import Testing

@testable import NetOptRouting

@Suite struct JSONPathTests {
  @Test func isWrittenAsRFC9535Does() {
    let path = JSONPath().key("hosts").key("a.example").key("endpoints").index(3).key("ip")
    #expect(path.description == "$.hosts[\"a.example\"].endpoints[3].ip")
  }

  @Test(arguments: [
    ("a", "$.a"), ("_a", "$._a"), ("A", "$.A"), ("", "$[\"\"]"), ("a-b", "$[\"a-b\"]"), ("1", "$[\"1\"]"),
    ("a\"b\\", "$[\"a\\\"b\\\\\"]"), ("a\n\u{1b}[2J", "$[\"a\u{fffd}\u{fffd}[2J\"]"), ("é", "$[\"é\"]"),
    ("@", "$[\"@\"]"), ("[", "$[\"[\"]"),
  ])
  func quotesWhatIsNoPlainName(_ name: String, _ path: String) {
    #expect(JSONPath().key(name).description == path)
  }

  @Test func cutsLongNames() {
    let path = JSONPath().key(String(repeating: "-", count: 100_000)).description
    #expect(path.count == 206)
    #expect(path.hasSuffix("-…\"]"))
  }
}
