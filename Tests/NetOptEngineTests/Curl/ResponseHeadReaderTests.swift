import NetOptCore
import Testing

@testable import NetOptEngine

@Suite("Heads that RFC 9110 and 9112 do not allow are refused") struct ResponseHeadReaderTests {
  /// Reads the lines of heads with a new reader, up to the first line that has a fault.
  ///
  /// - Parameters:
  ///   - lines: the lines without their line ends.
  ///   - isMultiplexed: whether the lines come over HTTP/2.
  ///   - end: the line end that the function appends to each line.
  /// - Returns: the reader, and the fault of the last line that it read; `nil` if no line has a fault.
  private func read(
    _ lines: [String], isMultiplexed: Bool = false, end: String = "\r\n"
  ) -> (reader: ResponseHeadReader, fault: HeadFault?) {
    var reader = ResponseHeadReader()
    for line in lines {
      let bytes = Array((line + end).utf8)
      if let fault = bytes.withUnsafeBytes({ reader.read($0, isMultiplexed: isMultiplexed) }) {
        return (reader, fault)
      }
    }
    return (reader, nil)
  }

  @Test("the reader accepts CRLF and LF as line ends", arguments: ["\r\n", "\n"])
  func lineEnds(end: String) {
    var (reader, fault) = read(
      ["HTTP/1.1 200 OK", "Content-Length: 12", "X-A: b", ""], end: end)
    #expect(fault == nil)
    #expect(reader.isComplete)
    #expect(reader.framing == .length(12))
    let head = reader.take()
    #expect(head.status == 200)
    #expect(head.first("x-a") == "b")
  }

  @Test("the reader drops the fields and the framing of an interim response")
  func interim() {
    var (reader, fault) = read([
      "HTTP/1.1 103 Early Hints", "Link: <a>", "Content-Length: 4", "", "HTTP/1.1 200 OK", "X: y", "",
    ])
    #expect(fault == nil)
    #expect(reader.framing == .end)
    let head = reader.take()
    #expect(head.fields.count == 1)
    #expect(head.first("link") == nil)
  }

  @Test(
    "the reader accepts valid status lines, and reports the fault of each other line",
    arguments: [
      ("HTTP/1.1 200 OK", nil), ("HTTP/1.0 200 ", nil), ("HTTP/1.1 200", nil), ("HTTP/1.1 999 Odd", nil),
      ("HTTP/1.1 099 Odd", .status), ("HTTP/1.1 20 Odd", .status), ("HTTP/1.1 2000 Odd", .status),
      ("HTTP/1.1 -20 Odd", .status), ("HTTP/1.1  200 OK", .status), ("HTTP/11 200 OK", .unsupportedVersion),
      ("http/1.1 200 OK", .notHTTP), ("ICY 200 OK", .notHTTP), ("HTTP/1.1\t200 OK", .unsupportedVersion),
      ("HTTP/1.1", .status), ("HTTP/3 ", .status), ("HTTP/1,1 200 OK", .unsupportedVersion),
      ("HTTP/", .unsupportedVersion), ("HTTP/2 200", .versionMismatch),
      ("HTTP/1.1 101 Switching Protocols", .interim101), ("", .notHTTP),
    ] as [(String, HeadFault?)])
  func statusLines(line: String, fault: HeadFault?) {
    #expect(read([line]).fault == fault)
  }

  @Test("over HTTP/2, the reader accepts only HTTP/2 status lines")
  func multiplexed() {
    #expect(read(["HTTP/2 200", "a: b", ""], isMultiplexed: true).reader.isComplete)
    #expect(read(["HTTP/1.1 200 OK"], isMultiplexed: true).fault == .versionMismatch)
  }

  @Test(
    "the reader accepts valid field lines, and reports the fault of each other line",
    arguments: [
      ("A: b", nil), ("A:", nil), ("A:b\tc  ", nil), ("A: caf\u{e9}", nil), ("!#$%&'*+-.^_`|~0aZ: x", nil),
      ("A : b", .name(0x20)), (": b", .noName), ("A", .noColon), ("HTTP/1.1 404 Not Found", .noColon),
      ("HTTP/1.1 404: x", .name(0x2f)), ("A: b\rC: d", .value(0x0d)), ("A: \u{0}", .value(0)),
      ("A\r: b", .name(0x0d)), ("\rA: b", .name(0x0d)), ("A\u{0}: b", .name(0)),
      ("A: b\r", .value(0x0d)), ("A(: b", .name(0x28)), ("Ä: b", .name(0xc3)),
    ] as [(String, HeadFault?)])
  func fieldLines(line: String, fault: HeadFault?) {
    #expect(read(["HTTP/1.1 200 OK", line]).fault == fault)
  }

  @Test("the reader joins the lines of a folded field without their line ends")
  func folds() {
    var (reader, fault) = read([
      "HTTP/1.1 200 OK", "Cache-Control: max-age=3600,", " no-store", "\t, private", "X: y", "",
    ])
    #expect(fault == nil)
    let head = reader.take()
    #expect(head.fields.count == 2)
    #expect(head.first("cache-control") == "max-age=3600, no-store\t, private")
    #expect(head.first("x") == "y")
  }

  @Test(
    "the reader refuses a fold without a field, of a framing field, with NUL or CR, or after 64 folds",
    arguments: [
      ([" A: b"], .firstFold), (["Content-Length: 1", " 2"], .framingFold),
      (["content-encoding: gzip", "\t, br"], .framingFold),
      (["Transfer-Encoding: chunked", " "], .framingFold),
      (["A: b", " c\rd"], .value(0x0d)), (["A: b", " c\u{0}d"], .value(0)),
      (["A: b"] + Array(repeating: " c", count: 65), .folds),
    ] as [([String], HeadFault)])
  func badFolds(lines: [String], fault: HeadFault) {
    #expect(read(["HTTP/1.1 200 OK"] + lines).fault == fault)
  }

  @Test(
    "the reader accepts one valid length or the chunked coding, and refuses other values",
    arguments: [
      (["Content-Length: 0"], nil), (["Content-Length: 5, 5", "content-LENGTH:5"], nil),
      (["Content-Length: 5", "Content-Length: 6"], .contentLength),
      (["Content-Length: 5, 6"], .contentLength),
      (["Content-Length: 1000000000000000000000000000000"], .contentLength),
      (["Content-Length: -1"], .contentLength),
      (["Content-Length: +5"], .contentLength), (["Content-Length: 0x5"], .contentLength),
      (["Content-Length: "], .contentLength), (["Content-Length: 5,"], .contentLength),
      (["Content-Length: 5 5"], .contentLength), (["Content-Length: 9223372036854775807"], nil),
      (["Content-Length: 9223372036854775808"], .contentLength),
      (["Transfer-Encoding: chunked"], nil), (["Transfer-Encoding: Chunked "], nil),
      (["Transfer-Encoding: gzip, chunked"], .transferCoding),
      (["Transfer-Encoding: identity"], .transferCoding),
      (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], .transferCoding),
      (["Transfer-Encoding: xchunked"], .transferCoding), (["Transfer-Encoding:"], .transferCoding),
    ] as [([String], HeadFault?)])
  func framing(lines: [String], fault: HeadFault?) {
    #expect(read(["HTTP/1.1 200 OK"] + lines).fault == fault)
  }

  @Test("a head with Content-Length and Transfer-Encoding is ambiguous and chunked, in either order")
  func ambiguous() {
    for lines in [
      ["Content-Length: 5", "Transfer-Encoding: chunked"],
      ["Transfer-Encoding: chunked", "Content-Length: 5"],
    ] {
      let (reader, fault) = read(["HTTP/1.1 200 OK"] + lines + [""])
      #expect(fault == nil)
      #expect(reader.isAmbiguous)
      #expect(reader.framing == .chunked)
    }
  }

  @Test("the reader keeps no more of the content codings than the decoder needs to refuse them")
  func manyCodings() throws {
    let line = "Content-Encoding: " + String(repeating: "a,", count: 500)
    let (reader, fault) = read(["HTTP/1.1 200 OK"] + Array(repeating: line, count: 200) + [""])
    #expect(fault == nil)
    #expect((ContentDecoder.mostBytes + 1...4000).contains(reader.contentEncoding.utf8.count))
    #expect(throws: CodingFailure.tooMany) { _ = try ContentDecoder(reader.contentEncoding) }
  }

  @Test("the reader limits the bytes and the lines of heads, interim heads and trailers together")
  func limit() {
    let field = "X: " + String(repeating: "y", count: 1000)
    #expect(read(["HTTP/1.1 200 OK"] + Array(repeating: field, count: 300)).fault == .tooLarge)
    let interim = Array(repeating: ["HTTP/1.1 103 Early", field, ""], count: 300).flatMap { $0 }
    #expect(read(interim).fault == .tooLarge)
    let trailers = Array(repeating: field, count: 300)
    #expect(read(["HTTP/1.1 200 OK", ""] + trailers).fault == .tooLarge)
    #expect(read(["HTTP/1.1 200 OK"] + Array(repeating: field, count: 250)).fault == nil)
    let short = Array(repeating: "a:", count: ResponseHeadReader.mostLines - 2)
    #expect(read(["HTTP/1.1 200 OK"] + short).fault == nil)
    #expect(read(["HTTP/1.1 200 OK"] + short + ["", "a:", "a:"]).fault == .tooManyLines)
  }

  @Test("no accepted random head has a byte up to 0x20 in a name, or NUL, CR or LF in a value")
  func random() {
    let parts = [
      "HTTP/1.1 200 OK", "A: b", " c", "Content-Length: 3", "\r", "\u{0}", ":", "X", "\n", "", "HTTP/2 200",
    ]
    for seed in UInt64(1)...3000 {
      var random = SplitMix64(seed: seed)
      var lines = ["HTTP/1.1 200 OK"]
      for _ in 0...random.below(5) {
        var line = ""
        for _ in 0..<random.below(4) { line += parts[Int(random.below(UInt64(parts.count)))] }
        lines += line.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      }
      var (reader, fault) = read(lines)
      guard fault == nil else { continue }
      for field in reader.take().fields {
        #expect(!field.name.utf8.contains { $0 <= 0x20 }, "seed \(seed)")
        #expect(!field.value.utf8.contains { $0 == 0 || $0 == 0x0d || $0 == 0x0a }, "seed \(seed)")
      }
    }
  }
}
