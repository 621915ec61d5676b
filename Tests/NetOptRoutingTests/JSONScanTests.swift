import FoundationEssentials
import NetOptCore
import Testing

@testable import NetOptRouting

@Suite struct JSONScanTests {
  private func scan(_ text: String) -> (isJSON: Bool, faults: [String]) { scan(Array(text.utf8)) }

  private func scan(_ bytes: [UInt8]) -> (isJSON: Bool, faults: [String]) {
    var report = FaultReport()
    let isJSON = JSONScan.read(bytes, &report) != nil
    return (isJSON, report.faults.map { isJSON ? $0.path : $0.description })
  }

  @Test(arguments: [
    "{}", "[]", "0", "-0", "1.5e+10", "-1E2", "true", "false", "null", "\"\"", " \t\r\n[ ] ",
    "[1, \"a\", null, {\"a\": [{}]}]", "{\"a\": 1, \"b\": {\"a\": 1}, \"c\": [{\"a\": 1}, {\"a\": 2}]}",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"", "\"é😀\u{7f}\"", "\u{feff}{}",
  ])
  func takesJSON(_ text: String) {
    let result = scan(text)
    #expect(result.isJSON)
    #expect(result.faults.isEmpty)
  }

  @Test(arguments: [
    ("", "$: not JSON: line 1, column 1: the text ends early"),
    ("{", "$: not JSON: line 1, column 2: the text ends early"),
    ("{\"a\"", "$.a: not JSON: line 1, column 5: the text ends early"),
    ("{\"a\":", "$.a: not JSON: line 1, column 6: the text ends early"),
    ("{\"a\":1,}", "$.a: not JSON: line 1, column 8: a key in quotes belongs here"),
    ("{,}", "$: not JSON: line 1, column 2: a key in quotes or } belongs here"),
    ("{a:1}", "$: not JSON: line 1, column 2: a key in quotes or } belongs here"),
    ("{\"a\" 1}", "$.a: not JSON: line 1, column 6: a colon belongs here"),
    ("{\"a\":1 \"b\":2}", "$.a: not JSON: line 1, column 8: a comma or } belongs here"),
    ("{\"a\":[1,\n 2,]}", "$.a[2]: not JSON: line 2, column 4: a value belongs here"),
    ("[1 2]", "$[0]: not JSON: line 1, column 4: a comma or ] belongs here"),
    ("[1}", "$[0]: not JSON: line 1, column 3: a comma or ] belongs here"),
    ("{\"a\":1]", "$.a: not JSON: line 1, column 7: a comma or } belongs here"),
    ("{} {}", "$: not JSON: line 1, column 4: something follows the end of the document"),
    ("]", "$: not JSON: line 1, column 1: a value belongs here"),
    ("{'a':1}", "$: not JSON: line 1, column 2: a key in quotes or } belongs here"),
    ("[tru]", "$[0]: not JSON: line 1, column 2: a value belongs here"),
    ("// no\n{}", "$: not JSON: line 1, column 1: a value belongs here"),
    ("[NaN]", "$[0]: not JSON: line 1, column 2: a value belongs here"),
    ("[01]", "$[0]: not JSON: line 1, column 2: this number is not written as JSON writes numbers"),
    ("[-]", "$[0]: not JSON: line 1, column 2: this number is not written as JSON writes numbers"),
    ("[1.]", "$[0]: not JSON: line 1, column 2: this number is not written as JSON writes numbers"),
    ("[1e]", "$[0]: not JSON: line 1, column 2: this number is not written as JSON writes numbers"),
    ("[.5]", "$[0]: not JSON: line 1, column 2: a value belongs here"),
    ("[\"é\", \"abc", "$[1]: not JSON: line 1, column 7: this string is not closed"),
    (
      "[\"a\nb\"]", "$[0]: not JSON: line 1, column 4: a control character in a string; write it as an escape"
    ),
    ("[\"\\x\"]", "$[0]: not JSON: line 1, column 3: this escape does not stand for a character"),
    ("[\"\\u12g4\"]", "$[0]: not JSON: line 1, column 3: this escape does not stand for a character"),
    ("[\"\\ud800\"]", "$[0]: not JSON: line 1, column 3: this escape does not stand for a character"),
    ("[\"\\ud800\\u0041\"]", "$[0]: not JSON: line 1, column 3: this escape does not stand for a character"),
    ("[\"\\ude00\"]", "$[0]: not JSON: line 1, column 3: this escape does not stand for a character"),
    ("[\"\\", "$[0]: not JSON: line 1, column 3: this escape does not stand for a character"),
    ("[\"\\u00", "$[0]: not JSON: line 1, column 3: this escape does not stand for a character"),
  ])
  func saysWhereJSONEnds(_ text: String, _ fault: String) {
    let result = scan(text)
    #expect(!result.isJSON)
    #expect(result.faults == [fault])
  }

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
    let result = scan(text)
    #expect(result.isJSON)
    #expect(result.faults == paths)
  }

  @Test func countsDuplicatesBeyondThoseItNames() {
    var report = FaultReport()
    let text = "{" + String(repeating: "\"a\":1,", count: 1000) + "\"b\":1}"
    #expect(JSONScan.read(Array(text.utf8), &report) != nil)
    #expect(report.count == 999)
    #expect(report.faults.count == FaultReport.limit + 1)
    #expect(report.faults.last?.description == "$: and 899 more faults")
  }

  @Test("a string that would take minutes to compare is refused, escaped or not, as a key and as a value")
  func combiningMarks() {
    let (plain, escaped) = (
      String(repeating: "\u{301}\u{316}", count: 200_000), String(repeating: "\\u0301", count: 31)
    )
    for marks in [plain, escaped] {
      for text in ["{\"a\(marks)\": 1}", "{\"a\": [\"\(marks)\"]}"] {
        var report = FaultReport()
        #expect(JSONScan.read(Array(text.utf8), &report) == nil)
        #expect(report.faults.first?.message.contains("combining marks") == true, "\(report)")
      }
    }
  }

  @Test func stopsAtDeepNesting() {
    let deepest = JSONScan.deepest
    #expect(scan(String(repeating: "[", count: deepest) + String(repeating: "]", count: deepest)).isJSON)
    let result = scan(String(repeating: "[", count: 1 << 20))
    #expect(!result.isJSON)
    #expect(result.faults.first?.hasSuffix("nested deeper than 128 levels") == true)
  }

  /// Documents in which a scan that is not linear would take minutes.
  @Test(arguments: ["{\"a\":0,", "[", "\"\\u0061", "{\"\\ud83d\\ude00\":[", "[{\"a\":{},\"a\":"])
  func readsLargeDocumentsOfOnePattern(_ pattern: String) {
    let bytes = Array(pattern.utf8)
    let body = (0..<(1 << 19)).map { bytes[$0 % bytes.count] }
    #expect(!scan(body).isJSON)
    let object = "{" + (0..<40_000).map { "\"\\u0061\($0 / 2)\":0" }.joined(separator: ",") + "}"
    var report = FaultReport()
    #expect(JSONScan.read(Array(object.utf8), &report) != nil)
    #expect(report.count == 20_000)
  }

  @Test func takesAnyBytes() {
    var random = SplitMix64(seed: 7)
    let alphabet = Array("{}[]\":,\\u00ad8tfn-1.e \n\u{0}é".utf8) + [0xff, 0xc0, 0x80]
    var valid = 0
    for _ in 0..<20_000 {
      let length = Int.random(in: 0...40, using: &random)
      let bytes = (0..<length).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] }
      let result = scan(bytes)
      if result.isJSON { valid += 1 } else { #expect(!result.faults.isEmpty) }
      // What it takes for JSON the decoder takes too.
      if result.isJSON, String(validating: bytes, as: UTF8.self) != nil {
        #expect(throws: Never.self) { try JSONDecoder().decode(Anything.self, from: Data(bytes)) }
      }
    }
    #expect(valid > 0)
  }

  @Test func readsEscapesAsTheDecoderDoes() throws {
    var random = SplitMix64(seed: 11)
    let pieces = [
      "a", "\\n", "\\\"", "\\\\", "\\/", "\\u0041", "\\u00E9", "\\u20ac", "\\ud83d\\ude00", "é", "😀",
    ]
    for _ in 0..<500 {
      let count = Int.random(in: 0...6, using: &random)
      let key = (0..<count).map { _ in pieces[Int.random(in: 0..<pieces.count, using: &random)] }.joined()
      let decoded = try JSONDecoder().decode(String.self, from: Data("\"\(key)\"".utf8))
      let plain = String(decoding: try JSONEncoder().encode(decoded), as: UTF8.self)
      #expect(scan("{\"\(key)\": 1, \(plain): 2}").faults.count == 1)
      #expect(scan("{\"\(key)\": 1, \(plain.dropLast())x\": 2}").faults.isEmpty)
    }
  }

  private struct Anything: Decodable {
    init(from decoder: any Decoder) throws {}
  }
}
