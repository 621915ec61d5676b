import NetOptCore
import Testing

@testable import NetOptRouting

/// The faults that are reported for a list's JSON. NetOptCoreTests tests the JSON reader itself.
@Suite struct JSONDocumentTests {
  /// Reads a text. When it is JSON, `faults` has the path of each fault, which is a duplicate key. When it is
  /// not, `faults` has the full description of each fault.
  private func read(_ text: String) -> (isJSON: Bool, faults: [String]) {
    var report = FaultReport()
    let isJSON = JSONDocument.read(Array(text.utf8), &report) != nil
    return (isJSON, report.faults.map { isJSON ? $0.path : $0.description })
  }

  @Test(
    "the fault of invalid JSON names the path, the line, the column and the cause",
    arguments: [
      ("", "$: not JSON: line 1, column 1: the text ends early"),
      ("{", "$: not JSON: line 1, column 2: the text ends early"),
      ("{\"a\"", "$.a: not JSON: line 1, column 5: the text ends early"),
      ("{\"a\":", "$.a: not JSON: line 1, column 6: the text ends early"),
      ("{\"a\":1,}", "$.a: not JSON: line 1, column 8: a key in quotes is expected here"),
      ("{,}", "$: not JSON: line 1, column 2: a key in quotes or } is expected here"),
      ("{a:1}", "$: not JSON: line 1, column 2: a key in quotes or } is expected here"),
      ("{\"a\" 1}", "$.a: not JSON: line 1, column 6: a colon is expected here"),
      ("{\"a\":1 \"b\":2}", "$.a: not JSON: line 1, column 8: a comma or } is expected here"),
      ("{\"a\":[1,\n 2,]}", "$.a[2]: not JSON: line 2, column 4: a value is expected here"),
      ("[1 2]", "$[0]: not JSON: line 1, column 4: a comma or ] is expected here"),
      ("[1}", "$[0]: not JSON: line 1, column 3: a comma or ] is expected here"),
      ("{\"a\":1]", "$.a: not JSON: line 1, column 7: a comma or } is expected here"),
      ("{} {}", "$: not JSON: line 1, column 4: more text follows the end of the document"),
      ("]", "$: not JSON: line 1, column 1: a value is expected here"),
      ("{'a':1}", "$: not JSON: line 1, column 2: a key in quotes or } is expected here"),
      ("[tru]", "$[0]: not JSON: line 1, column 2: a value is expected here"),
      ("// no\n{}", "$: not JSON: line 1, column 1: a value is expected here"),
      ("[NaN]", "$[0]: not JSON: line 1, column 2: a value is expected here"),
      ("[01]", "$[0]: not JSON: line 1, column 2: this is not a valid JSON number"),
      ("[-]", "$[0]: not JSON: line 1, column 2: this is not a valid JSON number"),
      ("[1.]", "$[0]: not JSON: line 1, column 2: this is not a valid JSON number"),
      ("[1e]", "$[0]: not JSON: line 1, column 2: this is not a valid JSON number"),
      ("[.5]", "$[0]: not JSON: line 1, column 2: a value is expected here"),
      ("[\"é\", \"abc", "$[1]: not JSON: line 1, column 7: this string is not closed"),
      (
        "[\"a\nb\"]",
        "$[0]: not JSON: line 1, column 4: this string has a control character; write it as an escape"
      ),
      ("[\"\\x\"]", "$[0]: not JSON: line 1, column 3: this escape sequence does not encode a character"),
      ("[\"\\u12g4\"]", "$[0]: not JSON: line 1, column 3: this escape sequence does not encode a character"),
      ("[\"\\ud800\"]", "$[0]: not JSON: line 1, column 3: this escape sequence does not encode a character"),
      (
        "[\"\\ud800\\u0041\"]",
        "$[0]: not JSON: line 1, column 3: this escape sequence does not encode a character"
      ),
      ("[\"\\ude00\"]", "$[0]: not JSON: line 1, column 3: this escape sequence does not encode a character"),
      ("[\"\\", "$[0]: not JSON: line 1, column 3: this escape sequence does not encode a character"),
      ("[\"\\u00", "$[0]: not JSON: line 1, column 3: this escape sequence does not encode a character"),
    ])
  func invalidJSON(_ text: String, _ fault: String) {
    let result = read(text)
    #expect(!result.isJSON)
    #expect(result.faults == [fault])
  }

  /// Two keys of one object are duplicates when they are equal as Swift strings, even when their bytes
  /// differ. `paths` has the path of each key that repeats an earlier one.
  @Test(arguments: [
    ("{\"a\": 1, \"a\": 2}", ["$.a"]),
    ("{\"a\": 1, \"\\u0061\": 2}", ["$.a"]),
    ("{\"\": 1, \"\": 2}", ["$[\"\"]"]),
    ("{\"é\": 1, \"e\\u0301\": 2}", ["$[\"é\"]"]),
    ("{\"a\": 1, \"b\": {\"a\": 1, \"a\": 2}, \"a\": 3, \"a\": 4}", ["$.b.a", "$.a", "$.a"]),
    ("{\"h\": [{}, {\"x\": {}, \"x\": {\"y\": 1, \"y\": 2}}]}", ["$.h[1].x", "$.h[1].x.y"]),
    ("{\"a.example\": [], \"a.example\": []}", ["$[\"a.example\"]"]),
    ("{\"\\ud83d\\ude00\": 1, \"😀\": 2}", ["$[\"😀\"]"]),
    ("{\"a\\\"\": 1, \"a\\\"\": 2}", ["$[\"a\\\"\"]"]),
    ("{\"a\": \"a\", \"b\": [\"a\", \"a\"], \"c\": {\"a\": \"\\\"a\\\": 1\"}}", []),
    ("{\"a\\u0000\": 1, \"a\": 2}", []),
    ("{\"A\": 1, \"a\": 2}", []),
  ])
  func findsDuplicateKeys(_ text: String, _ paths: [String]) {
    let result = read(text)
    #expect(result.isJSON)
    #expect(result.faults == paths)
  }

  @Test("the report lists 100 duplicate keys and counts the others")
  func manyDuplicateKeys() {
    var report = FaultReport()
    let text = "{" + String(repeating: "\"a\":1,", count: 1000) + "\"b\":1}"
    #expect(JSONDocument.read(Array(text.utf8), &report) != nil)
    #expect(report.count == 999)
    #expect(report.faults.count == FaultReport.limit + 1)
    #expect(report.faults.last?.description == "$: and 899 more faults")
  }

  /// Swift takes minutes to compare strings that contain a run of 400,000 combining marks. The reader refuses
  /// runs of more than 30 marks (`SlowText.mostMarks`).
  @Test("a key or value with too many combining marks is refused, escaped or not")
  func combiningMarks() {
    let (plain, escaped) = (
      String(repeating: "\u{301}\u{316}", count: 200_000), String(repeating: "\\u0301", count: 31)
    )
    for marks in [plain, escaped] {
      for text in ["{\"a\(marks)\": 1}", "{\"a\": [\"\(marks)\"]}"] {
        var report = FaultReport()
        #expect(JSONDocument.read(Array(text.utf8), &report) == nil)
        #expect(report.faults.first?.message.contains("combining marks") == true, "\(report)")
      }
    }
  }

  @Test("duplicate keys are reported before the fault of invalid JSON")
  func duplicateKeysFirst() {
    let result = read("{\"a\": 1, \"a\": [0,\n \"é\" x")
    #expect(!result.isJSON)
    #expect(
      result.faults == [
        "$.a: this key appears more than once; keep one and remove the others",
        "$.a[1]: not JSON: line 2, column 6: a comma or ] is expected here",
      ])
  }

  @Test("JSON that is nested deeper than 128 levels is a fault")
  func deepNestingIsAFault() {
    let result = read(String(repeating: "[", count: 1 << 20))
    #expect(!result.isJSON)
    #expect(result.faults.first?.hasSuffix("nested deeper than 128 levels") == true)
  }

  @Test("escaped keys and texts are decoded, and integers in any notation are read as integers")
  func values() throws {
    var report = FaultReport()
    let text = #"{"\u0061": "\ud83d\ude00\n", "b": [12, -0, 1.0e3, 1.5, 9223372036854775808, true, "1"]}"#
    let root = try #require(JSONDocument.read(Array(text.utf8), &report)).root
    var texts: [String?] = []
    var numbers: [Int64?] = []
    root.forEachMember { key, value in
      if key.isKey("a") { texts.append(value.text) }
      if key.isKey("b") {
        value.forEachElement { element in
          numbers.append(element.integer)
          return true
        }
      }
    }
    #expect(texts == ["😀\n"])
    #expect(numbers == [12, 0, 1000, nil, nil, nil, nil])
  }
}
