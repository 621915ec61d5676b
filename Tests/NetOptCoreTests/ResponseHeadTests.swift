import NetOptCore
import Testing

@Suite struct ResponseHeadTests {
  /// Returns a head with these field lines.
  private func head(_ lines: String) -> ResponseHead {
    ResponseHead(status: 200, version: .http2, lines: Array(lines.utf8))
  }

  /// Field lines, and the fields that a head reads from them.
  @Test(
    arguments: [
      ("", [:]),
      ("a: 1\r\nB: 2\r\n", ["a": "1", "B": "2"]),
      ("a: 1\nb: 2\n", ["a": "1", "b": "2"]),
      ("a:1\r\n", ["a": "1"]),
      ("a: \t 1 \t 2 \t\r\n", ["a": "1 \t 2"]),
      ("a:\r\nb: \r\n", ["a": "", "b": ""]),
      ("a: b: c\r\n", ["a": "b: c"]),
      ("a: 1\r\na: 2\r\n", ["a": "1", "a": "2"]),
      // Invalid lines are ignored.
      ("a\r\n: 1\r\n\r\n:\r\nb: 2\r\n", ["b": "2"]),
      ("a: 1\r\nb: 2", ["a": "1"]),
      ("\n\n\n", [:]),
    ] as [(String, HeaderFields)])
  func readsFields(_ lines: String, _ fields: HeaderFields) {
    #expect(head(lines).fields == fields)
  }

  @Test("first finds the first field with a name, without regard to case")
  func firstField() {
    let head = head("x\r\nContent-Type: a\r\ncontent-type: b\r\nA[: 1\r\nEmpty:\r\n")
    #expect(head.first("CONTENT-TYPE") == "a")
    #expect(head.first("content-type") == "a")
    // The bytes of `[` and `{` differ in the same bit as those of `A` and `a`.
    #expect(head.first("a[") == "1")
    #expect(head.first("a{") == nil)
    #expect(head.first("Content") == nil)
    #expect(head.first("Content-Type2") == nil)
    #expect(head.first("x") == nil)
    #expect(head.first("") == nil)
    #expect(head.first("empty")?.isEmpty == true)
  }

  @Test("a head replaces invalid UTF-8 in a value by U+FFFD")
  func invalidUTF8() {
    let head = ResponseHead(status: 200, version: .http1_1, lines: Array("a: x".utf8) + [0xff, 0x0a])
    #expect(head.first("a") == "x\u{fffd}")
    #expect(head.fields["a"] == "x\u{fffd}")
  }

  @Test("a head reads 10,001 fields and a value of 1,000,000 bytes")
  func hugeHead() {
    let lines = (0..<10_000).map { "x-\($0): \($0)\r\n" }.joined()
    let value = String(repeating: "v", count: 1_000_000)
    let head = head(lines + "big: \(value)\r\n")
    #expect(head.fields.count == 10_001)
    #expect(head.first("x-9999") == "9999")
    #expect(head.first("big") == value)
  }

  @Test("a head from fields has the same fields, status and version as one from lines")
  func fromFields() {
    let fields: HeaderFields = ["A": "1", "Set-Cookie": "x", "set-cookie": "y", "E": ""]
    let head = ResponseHead(status: 404, fields: fields)
    #expect(head.status == 404)
    #expect(head.version == .http1_1)
    #expect(head.fields == fields)
    #expect(head == ResponseHead(status: 404, version: .http1_1, lines: head.lines))
    #expect(ResponseHead(status: 204).fields.isEmpty)
  }

  @Test("line ends in a field add no line to a head")
  func lineEnds() {
    let head = ResponseHead(status: 200, fields: ["A": "1\r\nB: 2", "C\nD": "3\0"])
    #expect(head.fields == ["A": "1  B: 2", "C D": "3"])
    #expect(head.first("B") == nil)
    #expect(head.first("D") == nil)
  }

  @Test("random bytes give fields with a name and without line ends, and first agrees with them")
  func randomBytes() {
    var random = SplitMix64(seed: 4)
    let bytes: [UInt8] = [0, 0x09, 0x0a, 0x0d, 0x20, 0x3a, 0x41, 0x61, 0xc3, 0xff]
    for _ in 0..<5000 {
      let lines = (0..<Int.random(in: 0...40, using: &random)).map { _ in
        bytes.randomElement(using: &random) ?? 0
      }
      let head = ResponseHead(status: 200, version: .http1_1, lines: lines)
      for field in head.fields {
        #expect(!field.name.isEmpty)
        #expect(!field.value.utf8.contains(0x0a))
      }
      #expect(head.first("aa") == head.fields.values(of: "aa").first)
    }
  }

  @Test("reference keeps the bytes of a value, percent-encodes bytes outside ASCII, and refuses long values")
  func references() throws {
    // Returns what a head with this Location gives as the reference.
    func reference(_ value: [UInt8]) -> String? {
      ResponseHead(status: 302, version: .http1_1, lines: Array("Location: ".utf8) + value + [0x0d, 0x0a])
        .reference(
          "location")
    }
    #expect(reference(Array("/caf".utf8) + [0xe9]) == "/caf%E9")
    #expect(reference(Array("/caf".utf8) + [0xe8]) == "/caf%E8")
    #expect(reference(Array("/café?q= b".utf8)) == "/caf%C3%A9?q= b")
    #expect(reference([]) == "")
    let longest = [UInt8](repeating: 0x61, count: HTTPURL.longestReference)
    #expect(reference(longest)?.utf8.count == longest.count)
    #expect(reference(longest + [0x61]) == nil)
    #expect(ResponseHead(status: 302, fields: ["Locations": "/"]).reference("Location") == nil)
    var random = SplitMix64(seed: 5)
    for _ in 0..<2000 {
      let bytes = (0..<random.number(in: 0...12)).map { _ in UInt8(random.number(in: 0x21...0xff)) }
      let text = try #require(reference(bytes))
      var back: [UInt8] = []
      var rest = Array(text.utf8)[...]
      // Decodes the escapes of bytes from 0x80 on, which `reference` wrote.
      while let byte = rest.popFirst() {
        let isOwn =
          byte == 0x25 && rest.count >= 2
          && UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16).map { $0 >= 0x80 } == true
        if isOwn {
          back.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
          rest = rest.dropFirst(2)
        } else {
          back.append(byte)
        }
      }
      // A value with a percent sign may itself contain such an escape, and is then not decoded correctly.
      #expect(back == bytes || bytes.contains(0x25), "\(bytes)")
    }
  }
}
