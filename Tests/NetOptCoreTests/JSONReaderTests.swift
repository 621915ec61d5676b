import Foundation
import Glibc
import NetOptCore
import Testing

@Suite struct JSONReaderTests {
  /// Reads a JSON text.
  ///
  /// - Parameters:
  ///   - keys: the rule by which two keys of an object are equal.
  ///   - most: the maximum number of duplicate keys that the outline lists. The reader counts all of them.
  private func read(_ bytes: [UInt8], keys: JSONReader.KeyRule = .sameCharacters, most: Int = 100)
    -> JSONOutline
  {
    bytes.withUnsafeBytes { JSONReader.read($0, keys: keys, mostDuplicates: most) }
  }

  private func read(_ text: String, keys: JSONReader.KeyRule = .sameCharacters) -> JSONOutline {
    read(Array(text.utf8), keys: keys)
  }

  @Test(
    "the reader accepts valid JSON and finds no duplicate keys in it",
    arguments: [
      "{}", "[]", "0", "-0", "1.5e+10", "-1E2", "true", "false", "null", "\"\"", " \t\r\n[ ] ",
      "[1, \"a\", null, {\"a\": [{}]}]", "{\"a\": 1, \"b\": {\"a\": 1}, \"c\": [{\"a\": 1}, {\"a\": 2}]}",
      "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"", "\"é😀\u{7f}\"", "\u{feff}{}",
      "\"\u{7ff}\u{800}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}\"", "\"\\uD7FF\\uE000\\uDBFF\\uDFFF\"",
    ])
  func takesJSON(_ text: String) {
    for keys in [JSONReader.KeyRule.sameCharacters, .sameBytes] {
      let outline = read(text, keys: keys)
      #expect(outline.fault == nil)
      #expect(outline.duplicateCount == 0)
    }
  }

  /// A text, the offset of its fault in bytes, and a part of the message that names the rule.
  @Test(
    "the reader reports the rule that a text breaks and the offset of the fault",
    arguments: [
      ("", 0, "the text ends early"), ("\u{feff}", 3, "the text ends early"),
      ("[1,", 3, "the text ends early"),
      ("\u{feff}\u{feff}1", 3, "a value is expected here"), ("[1,]", 3, "a value is expected here"),
      ("{\"a\":1,}", 7, "a key in quotes is expected here"),
      ("{\"a\":1 \"b\"", 7, "a comma or } is expected here"),
      ("[fals]", 1, "a value is expected here"), ("tru", 0, "a value is expected here"),
      ("nullx", 4, "more text follows"),
      ("[1.e1]", 1, "this is not a valid JSON number"), ("-01", 0, "this is not a valid JSON number"),
      ("+1", 0, "a value is expected here"), ("[\"ab", 1, "not closed"),
      ("\"a\u{1f}\"", 2, "a control character"),
      ("\"a\\u00e\"", 2, "this escape"), ("\"\\ud800\"", 1, "this escape"),
      ("\"\\ud800\\n\"", 1, "this escape"),
      ("\"\\udc00\"", 1, "this escape"), ("\"\\ud800\\ud800\"", 1, "this escape"), ("\"\\", 1, "this escape"),
      ("\"\\ud800\\", 1, "this escape"), ("\"\\U0061\"", 1, "this escape"),
    ])
  func faultOffsets(_ text: String, _ offset: Int, _ rule: String) {
    let fault = read(text).fault
    #expect(fault?.offset == offset)
    #expect(fault?.rule.contains(rule) == true, "\(fault?.rule ?? "")")
  }

  @Test(
    "the reader refuses a string with invalid UTF-8 at the offset of the string",
    arguments: [
      [0x80], [0xbf], [0xc3], [0xc3, 0x28], [0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x80, 0x80],
      [0xe0, 0x9f, 0xbf],
      [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf], [0xf0, 0x80, 0x80, 0x80],
      [0xf0, 0x8f, 0xbf, 0xbf],
      [0xf0, 0x9f, 0x98], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80],
      [0xfe], [0xff],
    ] as [[UInt8]])
  func invalidUTF8(_ bytes: [UInt8]) {
    // The invalid bytes are in a value, and then in a key. The fault is at the first of them.
    for before in ["[\"", "{\"é\\n"] {
      let fault = read(Array(before.utf8) + bytes + Array("\": 1]".utf8)).fault
      #expect(fault?.offset == before.utf8.count)
      #expect(fault?.rule == "this string is not UTF-8")
    }
    #expect(read(bytes).fault?.rule == "a value is expected here")
  }

  /// Reads strings of four bytes. The first byte has each value from 0x80 on. The other bytes have values on
  /// both sides of each limit between bytes that UTF-8 allows and bytes that it does not allow.
  @Test("the reader accepts the same UTF-8 as the Swift standard library")
  func validUTF8() {
    var differences = 0
    // A quote would end the string, a backslash would begin an escape, and JSON forbids bytes below 0x20 in
    // strings. So no sample is such a byte.
    let samples: [UInt8] = [0x20, 0x61, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc3, 0xff]
    for first in UInt8(0x80)...0xff {
      for second in samples {
        for third in samples {
          for fourth in samples {
            let text: [UInt8] = [0x22, first, second, third, fourth, 0x22]
            let isText = String(validating: text, as: UTF8.self) != nil
            if (read(text).fault == nil) != isText { differences += 1 }
          }
        }
      }
    }
    #expect(differences == 0)
  }

  @Test("a node gives the kind, range, text and member count of its value, and the next node's index")
  func nodes() throws {
    let text = #" {"a": [1, {}], "é\n": "x\ud83d\ude00", "": -2.5e1, "t": true, "f": false, "n": null} "#
    let bytes = Array(text.utf8)
    let outline = read(bytes)
    try #require(outline.fault == nil)
    // Node 0 is the object. Nodes 1 and 2 are the key "a" and its array, and nodes 3 and 4 the elements of
    // the array. Nodes 5 and 6 are the key "é\n" and its value, and so on.
    let kinds: [JSONNode.Kind] = [
      .object, .string, .array, .number, .object, .string, .string, .string, .number, .string, .true, .string,
      .false,
      .string, .null,
    ]
    #expect(outline.nodes.map(\.kind) == kinds)
    #expect(outline.nodes.map(\.next) == [15, 2, 5, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
    #expect(outline.nodes.map(\.count) == [6, 0, 2] + [Int](repeating: 0, count: 12))
    #expect(bytes[outline.nodes[2].range].elementsEqual("[1, {}]".utf8))
    #expect(bytes[outline.nodes[8].range].elementsEqual("-2.5e1".utf8))
    bytes.withUnsafeBytes { bytes in
      let strings = outline.nodes.filter { $0.kind == .string }
      #expect(strings.map { $0.text(in: bytes) } == ["a", "é\n", "x😀", "", "t", "f", "n"])
      #expect(strings.map(\.isPlain) == [true, false, false, true, true, true, true])
      for node in strings {
        let text = node.text(in: bytes)
        var again: [UInt8] = []
        node.forEachByte(in: bytes) { again.append($0) }
        #expect(again.elementsEqual(text.utf8))
        #expect(node.isText(text, in: bytes))
        for other in [text + "x", "x" + text, String(text.dropLast()) + "y"] {
          #expect(!node.isText(other, in: bytes))
        }
      }
    }
  }

  /// A text, the number of its duplicate keys if the reader compares characters, and the number if the reader
  /// compares bytes.
  @Test(
    "the reader compares keys by characters or by bytes, as the caller chooses",
    arguments: [
      (#"{"a": 1, "a": 2}"#, 1, 1), (#"{"a": 1, "\u0061": 2}"#, 1, 1), (#"{"\u00e9": 1, "é": 2}"#, 1, 1),
      (#"{"é": 1, "e\u0301": 2}"#, 1, 0), (#"{"A": 1, "a": 2}"#, 0, 0), (#"{"a": {"a": 1}, "b": "a"}"#, 0, 0),
      (#"{"a\u0000": 1, "a": 2}"#, 0, 0), (#"[{"x": 1, "y": {"z": 1, "z": 2, "z": 3}, "x": 1}]"#, 3, 3),
    ])
  func duplicateKeys(_ text: String, _ byCharacters: Int, _ byBytes: Int) {
    // With 20 more keys, the reader looks keys up in a set and does not compare them one by one.
    let many = (0..<20).map { "\"more\($0)\":0" }.joined(separator: ",")
    for text in [text, text.replacing("{", with: "{\(many),", maxReplacements: 1)] {
      #expect(read(text).duplicateCount == byCharacters)
      #expect(read(text, keys: .sameBytes).duplicateCount == byBytes)
    }
  }

  @Test("the reader reports the places of duplicates and faults, and counts duplicates beyond the limit")
  func placesOfDuplicates() {
    let text = #"{"h": [{}, {"x": 1, "x": {"y": 1, "y": 2}}], "h": 3}"#
    let outline = read(text)
    // Nodes 7, 11 and 13 are the second "x", the second "y" and the second "h".
    #expect(outline.duplicates.map(\.key) == [7, 11, 13])
    #expect(
      outline.duplicates.map(\.path) == [
        [.key(1), .index(1), .key(7)], [.key(1), .index(1), .key(7), .key(11)], [.key(13)],
      ])
    let one = read(Array(text.utf8), most: 1)
    #expect(one.duplicates.map(\.key) == [7])
    #expect(one.duplicateCount == 3)
    #expect(read(#"[{}, [0, {"a": 1, "b": x"#).fault?.path == [.index(1), .index(1), .key(7)])
  }

  /// Swift takes quadratic time to compare strings with such runs (`SlowText`). `sameBytes` compares no
  /// strings.
  @Test(
    "sameCharacters refuses a long run of combining marks or flags, sameBytes accepts it"
  )
  func combiningMarks() {
    let (plain, escaped) = (
      String(repeating: "\u{301}\u{316}", count: 200_000), String(repeating: "\\u0301", count: 31)
    )
    let flags = String(repeating: "\u{1f1e6}\\ud83c\\udde6", count: 301)
    for marks in [plain, escaped, flags, String(repeating: "\\u0301\u{316}", count: 16)] {
      // The fault is at the opening quote of the string, which is a key or a value.
      for (text, offset) in [("{\"a\(marks)\": 1}", 1), ("{\"a\": [\"\(marks)\"]}", 7)] {
        let fault = read(text).fault
        #expect(fault?.offset == offset)
        #expect(fault?.rule.contains("combining marks") == true)
        #expect(read(text, keys: .sameBytes).fault == nil)
      }
      let two = read("{\"x\(marks)\": 1, \"y\(marks)\": 2, \"x\(marks)\": 3}", keys: .sameBytes)
      #expect(two.duplicateCount == 1)
    }
    let thirty = String(repeating: "\u{301}", count: SlowText.mostMarks)
    #expect(read("[\"\(thirty)a\(thirty)\\n\(thirty)\"]").fault == nil)
  }

  @Test("the reader refuses a text that is nested deeper than 128 levels")
  func deepNesting() {
    let deepest = JSONReader.deepest
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
      func nested(_ levels: Int) -> String {
        String(repeating: open, count: levels) + (open == "[" ? "" : "0")
          + String(repeating: close, count: levels)
      }
      #expect(read(nested(deepest)).fault == nil)
      let fault = read(nested(deepest + 1)).fault
      #expect(fault?.rule == "nested deeper than 128 levels")
      #expect(fault?.offset == deepest * open.utf8.count)
    }
    #expect(read(String(repeating: "[", count: 1 << 20)).fault?.offset == deepest)
  }

  @Test("the reader refuses a text of 2 GiB before it reads the text")
  func textsAreLimited() throws {
    // This process may not read the memory: reading a byte of it would raise SIGSEGV.
    let size = Int(Int32.max) + 1
    let memory = try #require(mmap(nil, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))
    try #require(memory != MAP_FAILED)
    defer { munmap(memory, size) }
    let text = UnsafeRawBufferPointer(start: memory, count: size)
    let outline = JSONReader.read(text, keys: .sameBytes, mostDuplicates: 1)
    #expect(outline.fault?.offset == 0)
    #expect(outline.fault?.rule.contains("2 GiB") == true)
  }

  /// A reader whose time grows faster than the size of the text would take minutes for these documents. The
  /// test repeats the pattern until the text has 512 KiB.
  @Test(
    "the reader reads large documents of one repeated pattern in linear time",
    arguments: ["{\"a\":0,", "[", "\"\\u0061", "{\"\\ud83d\\ude00\":[", "[{\"a\":{},\"a\":"])
  func largeDocuments(_ pattern: String) {
    let bytes = Array(pattern.utf8)
    let body = (0..<(1 << 19)).map { bytes[$0 % bytes.count] }
    for keys in [JSONReader.KeyRule.sameCharacters, .sameBytes] {
      #expect(read(body, keys: keys).fault != nil)
    }
    // An object with 40,000 keys. The keys are 20,000 names, each of them twice.
    let object = "{" + (0..<40_000).map { "\"\\u0061\($0 / 2)\":0" }.joined(separator: ",") + "}"
    for keys in [JSONReader.KeyRule.sameCharacters, .sameBytes] {
      let outline = read(object, keys: keys)
      #expect(outline.fault == nil)
      #expect(outline.duplicateCount == 20_000)
      #expect(outline.duplicates.count == 100)
    }
  }
}
