import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Tests the bodies that netopt makes from values. Python reads them, independently of netopt.
@Suite struct RequestContentTests {
  /// Texts that forms and JSON must escape, and others.
  private static let texts = [
    "", " ", "a b", "+", "&", "=", "a=b&c", "%41", "ä€😀", "\u{0}", "\r\n", "~*-._", "\"\\/", "\u{7f}", "x",
  ]

  private static func text(_ body: RequestBody) throws -> String {
    guard case .bytes(let bytes) = body.source else { throw NetOptError(.unsupported, phase: .send, "") }
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test("Python reads the fields of a form, in their order")
  func forms() async throws {
    var random = SplitMix64(seed: 1)
    let forms = (0..<300).map { _ in
      (0...random.below(4)).map { _ in
        (name: Self.texts.randomElement(using: &random)!, value: Self.texts.randomElement(using: &random)!)
      }
    }
    let read = try await Python.output(
      of:
        """
        import sys, urllib.parse, json
        for line in sys.stdin:
            pairs = urllib.parse.parse_qsl(line[:-1], keep_blank_values=True, strict_parsing=True)
            print(json.dumps(pairs))
        """, on: forms.map { try Self.text(.form($0)) })
    try #require(read.count == forms.count)
    for (form, line) in zip(forms, read) {
      let pairs = try JSONDecoder().decode([[String]].self, from: Data(line.utf8))
      #expect(pairs == form.map { [$0.name, $0.value] })
    }
    #expect(RequestBody.form([]).length == 0)
    #expect(RequestBody.form([]).contentType == "application/x-www-form-urlencoded")
    #expect(try Self.text(.form(["b": "1 2", "a": "é", "b": ""])) == "b=1+2&a=%C3%A9&b=")
  }

  /// A value of each kind that JSON has.
  private struct Value: Codable, Equatable {
    var text: String
    var number: Int
    var list: [Double]
    var table: [String: Bool]
    var nothing: String?
  }

  @Test("Python reads what json encodes, and equal values have equal bytes")
  func json() async throws {
    var random = SplitMix64(seed: 2)
    let values = (0..<300).map { _ in
      Value(
        text: Self.texts.randomElement(using: &random)!, number: Int(random.below(1 << 50)) - 1 << 49,
        list: (0..<random.below(4)).map { _ in Double(random.below(1000)) / 8 },
        table: .init((0..<9).map { ("key \($0)", $0 % 2 == 0) }) { $1 })
    }
    let read = try await Python.output(
      of:
        """
        import sys, json
        for line in sys.stdin:
            print(json.dumps(json.loads(line)))
        """, on: values.map { try Self.text(.json($0)) })
    try #require(read.count == values.count)
    for (value, line) in zip(values, read) {
      #expect(try JSONDecoder().decode(Value.self, from: Data(line.utf8)) == value)
      // The order of a dictionary's keys differs from one dictionary to the next.
      var other = value
      other.table = [:]
      for key in value.table.keys.sorted() { other.table[key] = value.table[key] }
      #expect(try Self.text(.json(value)) == Self.text(.json(other)))
    }
    #expect(try RequestBody.json([1]).contentType == "application/json")
  }

  @Test("a value that JSON cannot express is refused with its place, without its content")
  func unencodable() {
    struct Secret: Error {}
    struct Failing: Encodable {
      func encode(to encoder: any Encoder) throws { throw Secret() }
    }
    var error = #expect(throws: NetOptError.self) { try RequestBody.json(["prices": [1, .nan]]) }
    #expect(error?.code == .invalidRequest)
    #expect(error?.message == "the body cannot be encoded as JSON: $.prices[1] cannot be encoded")
    error = #expect(throws: NetOptError.self) { try RequestBody.json(Failing()) }
    #expect(error?.message == "the body cannot be encoded as JSON: Secret")
  }

  @Test("the description of a body has its length and type, and no byte of it")
  func description() throws {
    let body = RequestBody.form(["token": "geheim"])
    #expect(body.description == "12 bytes of application/x-www-form-urlencoded")
    #expect(RequestBody.none.description == "0 bytes")
    var text = ""
    dump(body, to: &text)
    #expect(!text.contains("103"))
  }

  @Test("bytes may be Foundation's Data, and a URL may be Foundation's URL")
  func foundationTypes() throws {
    let url = try #require(URL(string: "https://a.test/b?c=d%20e"))
    let request = try NetOptRequest(.put, url, body: .bytes(Data([1, 2, 255])))
    #expect(request.url.description == "https://a.test/b?c=d%20e")
    if case .bytes([1, 2, 255]) = request.body.source {} else { Issue.record("other bytes") }
    let error = #expect(throws: NetOptError.self) {
      try NetOptRequest(.get, try #require(URL(string: "only/a/path")))
    }
    #expect(error?.code == .invalidURL)
  }
}
