import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptEngine

/// The check of chunked bodies (RFC 9112, section 7.1), which arrive in pieces of any size.
@Suite struct ChunkReaderTests {
  /// Reads a body in pieces of `size` bytes and returns the first fault.
  private func fault(of bytes: [UInt8], inPiecesOf size: Int) -> ChunkFault? {
    var reader = ChunkReader()
    for start in stride(from: 0, to: bytes.count, by: size) {
      let piece = Array(bytes[start..<min(start + size, bytes.count)])
      if let fault = piece.withUnsafeBytes({ reader.read($0) }) { return fault }
    }
    return nil
  }

  private func fault(of text: String, inPiecesOf size: Int) -> ChunkFault? {
    fault(of: Array(text.utf8), inPiecesOf: size)
  }

  @Test(
    "the reader accepts valid chunks and ignores the bytes after the last chunk",
    arguments: [
      // In the second text, white space and an extension follow the first size, and the data looks like a
      // size.
      "5\r\nhello\r\n0\r\n\r\n", "05 \t;a=\"b\rc\";d\r\n0x\r\ng\r\n0 ;e\r\n0g",
      // Sizes in capital and small letters, and line ends of LF alone.
      "A\r\n0123456789\r\na\n0123456789\n0\nzz",
      // A size of 17 digits. The reader leaves it to libcurl, which accepts at most 16 digits.
      "00000000000000000x",
    ])
  func right(text: String) {
    for count in 1...text.utf8.count { #expect(fault(of: text, inPiecesOf: count) == nil) }
  }

  @Test(
    "the reader refuses an invalid chunk size, even one that libcurl accepts",
    arguments: [
      "", " 5", "x5", "0x5", "0g", "0_1", "5-", "0 5", "5\t6", "0\r5", "5\r\r", "0\u{0}", ";a", "-1", "+1",
    ])
  func wrong(size: String) {
    let text = "3\r\nabc\r\n\(size)\r\nhello\r\n0\r\n\r\n"
    for count in 1...text.utf8.count { #expect(fault(of: text, inPiecesOf: count) == .size) }
  }

  @Test(
    "the reader refuses a chunk that does not end where its size says",
    arguments: ["3\r\nabcd\r\n", "3\r\nabc\rd", "4\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\r\n"])
  func end(text: String) {
    for count in 1...text.utf8.count { #expect(fault(of: text, inPiecesOf: count) == .end) }
  }

  @Test("the reader refuses endless chunk extensions and accepts chunk signatures")
  func extensions() {
    let signature = ";chunk-signature=" + String(repeating: "a", count: 64)
    let signed = (0..<5000).map { _ in "8\(signature)\r\n12345678\r\n" }.joined()
    #expect(fault(of: signed, inPiecesOf: 16_384) == nil)
    #expect(fault(of: String(repeating: "1\r\na\r\n", count: 100_000), inPiecesOf: 16_384) == nil)
    // A line with a size and its extensions may have 4096 bytes.
    for count in [4000, 5000] {
      let long = signed + "1;" + String(repeating: "a", count: count) + "\r\na\r\n"
      #expect(fault(of: long, inPiecesOf: 16_384) == (count < 4096 ? nil : .longLine))
    }
    // The limit is 64 KiB, plus 64 bytes of sizes, extensions and line ends per byte of data. Each chunk has
    // more than 100 such bytes and one byte of data.
    let each = "1;" + String(repeating: "a", count: 100) + "\r\na\r\n"
    #expect(fault(of: String(repeating: each, count: 10_000), inPiecesOf: 100) == .framing)
  }

  @Test("the reader accepts random chunks in random pieces, and refuses a wrong byte in a size")
  func drawn() {
    var random = SplitMix64(seed: 20)
    for _ in 0..<2000 {
      var body: [UInt8] = []
      // The offsets in the body at which a size ends.
      var offsets: [Int] = []
      for _ in 0..<Int.random(in: 0...5, using: &random) {
        let size = Int.random(in: 1...40, using: &random)
        body += Array(repeating: UInt8(ascii: "0"), count: Int.random(in: 0...3, using: &random))
        body += String(size, radix: 16).utf8
        offsets.append(body.count)
        body += "\r\n".utf8
        // The data has only bytes that also occur in sizes, extensions and line ends.
        body += (0..<size).map { _ in "0f;\r\n".utf8.randomElement(using: &random) ?? 0 }
        body += "\r\n".utf8
      }
      body += "0".utf8
      offsets.append(body.count)
      body += "\r\n\r\n".utf8
      let size = Int.random(in: 1...body.count, using: &random)
      #expect(fault(of: body, inPiecesOf: size) == nil, "\(body)")
      // A byte that makes a size invalid when it follows the digits.
      let odd = "gx_-.,:\u{0}\u{7f}".utf8.randomElement(using: &random) ?? 0
      body.insert(odd, at: offsets.randomElement(using: &random) ?? 0)
      #expect(fault(of: body, inPiecesOf: size) == .size, "\(body)")
    }
  }
}
