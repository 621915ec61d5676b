import FoundationEssentials
import NetOptCore
import Testing

@Suite struct JSONValueTests {
  @Test("an object keeps the order of its members")
  func memberOrder() {
    let value: JSONValue = ["z": 1, "a": nil, "m": [true, false, "x", 1.5], "e": [], "o": [:]]
    #expect(value.description == #"{"z":1,"a":null,"m":[true,false,"x",1.5],"e":[],"o":{}}"#)
  }

  @Test("indented JSON has each member on a line")
  func indentation() {
    let value: JSONValue = ["a": [1, 2], "b": [:], "c": ["d": nil]]
    let text = """
      {
        "a": [
          1,
          2
        ],
        "b": {},
        "c": {
          "d": null
        }
      }
      """
    #expect(String(decoding: value.bytes(indented: true), as: UTF8.self) == text)
  }

  @Test(
    "strings escape quotes, backslashes and control characters",
    arguments: [
      ("a\"b\\c", #""a\"b\\c""#), ("\u{8}\t\n\u{c}\r", #""\b\t\n\f\r""#),
      ("\0\u{1b}\u{1f}", #""\u0000\u001b\u001f""#),
      ("\u{7f}\u{80}\u{9f}", #""\u007f\u0080\u009f""#), ("é€😀/", "\"é€😀/\""), ("", "\"\""),
    ])
  func escapesTexts(text: String, json: String) {
    #expect(JSONValue.string(text).description == json)
  }

  @Test(
    "numbers, optionals and durations have their JSON text, and NaN and infinity are null",
    arguments: [
      (JSONValue.integer(.min), "-9223372036854775808"), (.integer(.max), "9223372036854775807"),
      (.number(0.1), "0.1"), (.number(-1e300), "-1e+300"), (.number(.leastNonzeroMagnitude), "5e-324"),
      (.number(.nan), "null"),
      (.number(.infinity), "null"), (.optional(nil as String?), "null"), (.optional("x"), "\"x\""),
      (.optional(nil as Int?), "null"), (.optional(7), "7"), (.microseconds(.milliseconds(3)), "3000"),
      (.microseconds(nil), "null"),
    ])
  func writesValues(value: JSONValue, json: String) {
    #expect(value.description == json)
  }

  @Test("append adds a member at the end of an object")
  func appending() {
    var value: JSONValue = ["b": 1]
    value.append("a", 2)
    #expect(value.description == #"{"b":1,"a":2}"#)
  }

  @Test("the written strings and numbers are the same for JSONDecoder")
  func decoder() throws {
    // All scalars below U+0800, the control characters included.
    let text = String(String.UnicodeScalarView((0..<0x800).compactMap(Unicode.Scalar.init)))
    let json = (["text": .string(text), "numbers": [1.25, -3]] as JSONValue).bytes(indented: true)
    struct Read: Decodable {
      let text: String
      let numbers: [Double]
    }
    let read = try JSONDecoder().decode(Read.self, from: Data(json))
    #expect(read.text == text)
    #expect(read.numbers == [1.25, -3])
  }

  @Test("the written pieces of a value are its bytes, and each has less than 50,000 bytes")
  func pieces() throws {
    var generator = SplitMix64(seed: 7)
    let alphabet: [Character] = ["a", "\"", "\\", "\u{1}", "\n", "é", "\u{200e}", "\u{1f600}", "\u{e0001}"]
    // The number of characters in each string. `write` may end a piece from 16,384 bytes on.
    for size in [0, 1, 100, 16_383, 16_384, 16_385, 200_000] {
      let mixed = String((0..<size).compactMap { _ in alphabet.randomElement(using: &generator) })
      let plain = String(repeating: "a", count: size)
      let value = JSONValue.object([
        .init("mixed", .string(mixed)), .init("list", [.string(plain), 1]), .init(plain, true),
      ])
      var written: [UInt8] = []
      value.write { piece in
        #expect(piece.count < 50_000)
        written += piece
      }
      #expect(written == value.bytes())
    }
  }

  @Test("write stops after the sink throws")
  func failingSink() {
    struct Full: Error {}
    // The number of pieces that the sink got. Each U+0001 becomes an escape of six bytes, so the text has
    // many pieces.
    var count = 0
    #expect(throws: Full.self) {
      try JSONValue.string(String(repeating: "\u{1}", count: 100_000)).write { (_) throws(Full) in
        count += 1
        if count == 2 { throw Full() }
      }
    }
    #expect(count == 2)
  }
}
