import CZlib
import CZstd
import Foundation
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptEngine

@Suite("Content codings are undone, and one that was cut is noticed") struct ContentDecoderTests {
  /// A text and its coded form.
  struct Sample: Sendable, CustomTestStringConvertible {
    /// The value of the field Content-Encoding: the codings in the order in which they were applied.
    let coding: String
    let text: [UInt8]
    /// The text after all codings were applied.
    let coded: [UInt8]
    var testDescription: String { coding }
  }

  /// Samples of each coding that netopt decodes, and of two codings on one body.
  static let samples: [Sample] = {
    var random = SplitMix64(seed: 7)
    let words = ["alpha ", "beta ", "gamma ", "delta ", "0123 "]
    var text: [UInt8] = []
    for _ in 0..<3000 { text += words[Int(random.below(5))].utf8 }
    return [
      Sample(coding: "gzip", text: text, coded: deflated(text, windowBits: 15 + 16)),
      Sample(coding: "x-gzip", text: text, coded: deflated(text, windowBits: 15 + 16)),
      Sample(coding: "deflate", text: text, coded: deflated(text, windowBits: 15)),
      Sample(coding: "DEFLATE", text: text, coded: deflated(text, windowBits: -15)),
      Sample(coding: "zstd", text: text, coded: zstandard(text)),
      Sample(
        coding: "br", text: Array(repeating: "hello ", count: 100).joined().utf8.map { $0 }, coded: brotli),
      Sample(coding: "zstd, gzip", text: text, coded: deflated(zstandard(text), windowBits: 15 + 16)),
      Sample(
        coding: "identity, gzip , zstd", text: text, coded: zstandard(deflated(text, windowBits: 15 + 16))),
    ]
  }()

  /// `"hello " * 100`, coded with brotli 1.1 at quality 9.
  static let brotli = Array(Data(base64Encoded: "G1cCACRAapDG6vCczgA=") ?? Data())

  /// Compresses bytes with zlib (deflateInit2).
  ///
  /// - Parameter windowBits: 15 for the format zlib (RFC 1950), 15 + 16 for gzip (RFC 1952), and -15 for
  ///   deflate without a header (RFC 1951).
  static func deflated(_ bytes: [UInt8], windowBits: Int32) -> [UInt8] {
    var stream = z_stream()
    let size = Int32(MemoryLayout<z_stream>.size)
    precondition(
      deflateInit2_(&stream, 9, Z_DEFLATED, windowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, size) == Z_OK)
    defer { deflateEnd(&stream) }
    var input = bytes
    var output = [UInt8](repeating: 0, count: bytes.count + bytes.count / 1000 + 1000)
    let made = input.withUnsafeMutableBufferPointer { input in
      output.withUnsafeMutableBufferPointer { output in
        stream.next_in = input.baseAddress
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(output.count)
        precondition(deflate(&stream, Z_FINISH) == Z_STREAM_END)
        return output.count - Int(stream.avail_out)
      }
    }
    return Array(output[..<made])
  }

  /// Compresses bytes into one zstd frame.
  static func zstandard(_ bytes: [UInt8]) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: ZSTD_compressBound(bytes.count))
    let count = ZSTD_compress(&output, output.count, bytes, bytes.count, 3)
    precondition(ZSTD_isError(count) == 0)
    return Array(output[..<count])
  }

  /// Decodes a body that arrives in pieces.
  ///
  /// - Parameters:
  ///   - coding: the value of the field Content-Encoding.
  ///   - room: the size of the output buffer, in bytes.
  ///   - isTimed: whether the decoder has the system's clocks and refuses input that takes too long. If
  ///     false, its clock always shows 0, so it refuses nothing for its time.
  /// - Returns: the decoded bytes, and whether all codings reached their end.
  private func decode(
    _ pieces: [ArraySlice<UInt8>], _ coding: String, room: Int, isTimed: Bool = false
  ) throws -> (bytes: [UInt8], isComplete: Bool) {
    var decoder = try #require(try isTimed ? ContentDecoder(coding) : ContentDecoder(coding) { _ in 0 })
    var bytes: [UInt8] = []
    var output = [UInt8](repeating: 0, count: room)
    for piece in pieces {
      try piece.withUnsafeBytes { piece in
        var rest = piece
        while true {
          let count = try output.withUnsafeMutableBytes { try decoder.decode(&rest, into: $0) }
          if count == 0 { break }
          bytes += output[..<count]
        }
        #expect(rest.isEmpty)
      }
    }
    return (bytes, decoder.isComplete)
  }

  /// Cuts bytes into pieces of random sizes.
  private func pieces(of bytes: [UInt8], _ random: inout SplitMix64) -> [ArraySlice<UInt8>] {
    var pieces: [ArraySlice<UInt8>] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = min(rest.count, 1 + Int(random.below(random.below(4) == 0 ? 3 : 700)))
      pieces.append(rest.prefix(count))
      rest = rest.dropFirst(count)
    }
    return pieces
  }

  @Test(
    "the decoder decodes a body in pieces of any size, with an output buffer of any size", arguments: samples)
  func decodes(sample: Sample) throws {
    for seed in UInt64(1)...40 {
      var random = SplitMix64(seed: seed)
      let room = 1 + Int(random.below(seed.isMultiple(of: 2) ? 20 : 20_000))
      let (bytes, isComplete) = try decode(pieces(of: sample.coded, &random), sample.coding, room: room)
      #expect(bytes == sample.text, "seed \(seed)")
      #expect(isComplete, "seed \(seed)")
    }
  }

  @Test("the decoder reports a body that is cut anywhere as incomplete", arguments: samples)
  func noticesACut(sample: Sample) throws {
    for count in stride(from: 1, to: sample.coded.count, by: max(1, sample.coded.count / 200)) {
      let (bytes, isComplete) = try decode([sample.coded[..<count]], sample.coding, room: 5000)
      #expect(!isComplete, "cut behind \(count)")
      #expect(sample.text.starts(with: bytes))
    }
    // A body without its last byte is incomplete, too.
    #expect(try !decode([sample.coded.dropLast()], sample.coding, room: 5000).isComplete)
  }

  @Test("a body of no bytes is complete")
  func nothing() throws {
    #expect(try decode([], "gzip", room: 10).isComplete)
  }

  @Test("the decoder refuses bytes after the end, but accepts another gzip member or zstd frame")
  func behindTheEnd() throws {
    for sample in Self.samples where !sample.coding.contains(",") {
      #expect(throws: CodingFailure.invalid, "\(sample.coding)") {
        let bytes = sample.coded + Array(repeating: 0x58, count: 6)
        _ = try decode([bytes[...]], sample.coding, room: 30_000)
      }
    }
    for coding in ["gzip", "zstd"] {
      let sample = try #require(Self.samples.first { $0.coding == coding })
      let (bytes, isComplete) = try decode([(sample.coded + sample.coded)[...]], coding, room: 999)
      #expect(bytes == sample.text + sample.text)
      #expect(isComplete)
    }
  }

  @Test("the decoder refuses changed bytes or decodes them, and never ends the process")
  func changes() throws {
    for sample in Self.samples {
      for seed in UInt64(1)...300 {
        var random = SplitMix64(seed: seed)
        var bytes = sample.coded
        for _ in 0...Int(random.below(3)) {
          bytes[Int(random.below(UInt64(bytes.count)))] = UInt8(truncatingIfNeeded: random.next())
        }
        do {
          let (text, isComplete) = try decode(pieces(of: bytes, &random), sample.coding, room: 4096)
          // gzip ends with a checksum. So if a byte after its header of 10 bytes has changed, the decoder
          // refuses the body, or the text is still right. Not every other coding has a checksum.
          if isComplete, sample.coding.hasSuffix("gzip"), bytes.dropFirst(10) != sample.coded.dropFirst(10) {
            #expect(text == sample.text, "\(sample.coding), seed \(seed)")
          }
        } catch let failure as CodingFailure {
          #expect(failure == .invalid, "\(sample.coding), seed \(seed)")
        }
      }
    }
  }

  /// `bytesBetween` is the number of output bytes for 600,000 empty blocks. There are about 4 million empty
  /// blocks, which are compressed again with gzip.
  @Test(
    "the decoder refuses gzip in gzip with empty blocks that yield next to no output", arguments: [0, 1, 100])
  func barren(bytesBetween: Int) throws {
    // The header of gzip, and stored blocks (RFC 1951, section 3.2.4) that are not the last. Most blocks are
    // empty, and the others have one byte.
    var coded: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]
    let empty = Array([[0, 0, 0, 0xff, 0xff] as [UInt8]].joined())
    // The number of empty blocks before each block with a byte.
    let gap = bytesBetween == 0 ? 2_000_000 : 600_000 / bytesBetween
    for _ in 0..<(2_000_000 / gap * 2) {
      for _ in 0..<gap { coded += empty }
      if bytesBetween > 0 { coded += [0, 1, 0, 0xfe, 0xff, 0x61] }
    }
    coded = Self.deflated(coded, windowBits: 15 + 16)
    #expect(throws: CodingFailure.invalid) { try decode([coded[...]], "gzip, gzip", room: 16_384) }
  }

  /// The blocks have 300,000 bytes and no output. One coding may pass 256 KiB to the next before the first
  /// output.
  @Test("the decoder refuses gzip in gzip with only 60,000 empty blocks")
  func fewBarren() throws {
    var coded: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]
    for _ in 0..<60_000 { coded += [0, 0, 0, 0xff, 0xff] }
    #expect(throws: CodingFailure.invalid) {
      try decode([Self.deflated(coded, windowBits: 15 + 16)[...]], "gzip, gzip", room: 16_384)
    }
  }

  /// The body has brotli blocks of 81 bytes (RFC 7932, section 9.2). Each block declares 256 block types and
  /// a context map of 16,384 entries, and yields one byte. A decoder takes 0.1 ms to read a block.
  @Test(
    "the decoder refuses a body that takes far longer to decode than its size explains",
    arguments: ["br", "br, gzip"])
  func slow(coding: String) throws {
    let block =
      [0, 0, 0xf0, 0xff, 0, 0x10] + [UInt8](repeating: 0, count: 65)
      + [0x80, 0x10, 0x8b, 0xa0, 0x08, 0x0a, 0x04, 0x02, 0x30, 0x00]
    // A body with one block is within the time limit.
    let few = [0x0c] + block + [0x03]
    #expect(try decode([few[...]], "br", room: 16_384, isTimed: true).bytes.count == 1)
    var coded: [UInt8] = [0x0c]
    for _ in 0..<6000 { coded += block }
    coded.append(0x03)
    if coding == "br" {
      #expect(throws: CodingFailure.tooSlow) { try decode([coded[...]], coding, room: 16_384, isTimed: true) }
    } else {
      // The limit for the bytes between the codings may refuse the body before the time limit does.
      let small = Self.deflated(coded, windowBits: 15 + 16)
      #expect(throws: CodingFailure.self) { try decode([small[...]], coding, room: 16_384, isTimed: true) }
    }
  }

  /// The time limit allows about 3 µs on average for each piece of this body. Even without compiler
  /// optimisation a piece takes about 1 µs on an idle machine.
  @Test(
    "a timed decoder decodes a body in pieces of 1 to 4 bytes within the time limit",
    .disabled(if: Sanitizer.isOn, "a sanitizer multiplies the time"))
  func smallPieces() throws {
    var random = SplitMix64(seed: 3)
    let text = (0..<100_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    let coded = Self.deflated(text, windowBits: 15 + 16)
    var pieces: [ArraySlice<UInt8>] = []
    var start = 0
    while start < coded.count {
      let end = min(start + 1 + Int(random.below(4)), coded.count)
      pieces.append(coded[start..<end])
      start = end
    }
    let (bytes, isComplete) = try decode(pieces, "gzip", room: 16_384, isTimed: true)
    #expect(isComplete && bytes == text)
  }

  @Test("the zstd decoder skips skippable frames and refuses frames of older formats than RFC 8878")
  func zstandardFrames() throws {
    let frame = Self.zstandard(Array("text".utf8))
    // A skippable frame with 3 bytes (RFC 8878, section 3.1.2).
    let skipped: [UInt8] = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]
    for coded in [frame, skipped + frame, frame + skipped + frame] {
      let bytes = try decode(coded.indices.map { coded[$0...$0] }, "zstd", room: 100).bytes
      #expect(bytes == Array("text".utf8) || bytes == Array("texttext".utf8))
    }
    // The first bytes of the magic numbers of zstd 0.1 to 0.7.
    for version in [0x1e, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27] as [UInt8] {
      let old = [version, 0xb5, 0x2f, 0xfd] + frame[4...]
      #expect(throws: CodingFailure.invalid) { try decode([old[...]], "zstd", room: 100) }
      #expect(throws: CodingFailure.invalid) { try decode([(frame + old)[...]], "zstd", room: 100) }
    }
  }

  @Test("the decoder decodes 9 MB of incompressible data in two codings")
  func incompressible() throws {
    var random = SplitMix64(seed: 3)
    let text = (0..<9_000_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    let coded = Self.zstandard(Self.deflated(text, windowBits: 15 + 16))
    #expect(try decode([coded[...]], "gzip, zstd", room: 16_384).bytes == text)
  }

  @Test("the decoder refuses unknown codings, more than two codings and overlong lists")
  func unknown() throws {
    for coding in ["compress", "g zip", "gz\tip", "gzip br", "gzip;q=1"] {
      #expect(throws: CodingFailure.unknown, "\(coding)") { _ = try ContentDecoder(coding) }
    }
    // The decoder must count the codings before it makes their decoders, which would take much memory.
    let before = ProcessFootprint.now.memoryBytes
    let many = Array(repeating: "br", count: 80_000).joined(separator: ",")
    #expect(throws: CodingFailure.tooMany) { _ = try ContentDecoder(many) }
    #expect(ProcessFootprint.now.memoryBytes - before < 100 << 20)
    #expect(throws: CodingFailure.tooMany) { _ = try ContentDecoder("gzip, identity,gzip,br") }
    // Empty members and spaces count too, because they also count for netopt's cache. The cache does not read
    // a value beyond its own limits.
    #expect(throws: CodingFailure.tooMany) {
      _ = try ContentDecoder("gzip" + String(repeating: ",", count: 64))
    }
    #expect(throws: CodingFailure.tooMany) {
      _ = try ContentDecoder("gzip," + String(repeating: " ", count: 2000) + "identity")
    }
    #expect(throws: CodingFailure.tooMany) {
      _ = try ContentDecoder(Array(repeating: "identity", count: 65).joined(separator: ","))
    }
    #expect(try ContentDecoder("gzip" + String(repeating: ",", count: 63)) != nil)
    #expect(try ContentDecoder("identity") == nil)
    #expect(try ContentDecoder(" , ") == nil)
  }
}
