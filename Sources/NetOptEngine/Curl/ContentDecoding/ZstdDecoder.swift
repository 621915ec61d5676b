import CZstd

/// Decodes the coding zstd (RFC 8878), with one frame or several. The decoder refuses windows over 8 MiB (RFC
/// 9659). It also refuses the formats that are older than the RFC: the library would read them, and without a
/// limit for the window.
final class ZstdDecoder: CodingDecoder {
  private let stream: OpaquePointer
  /// Whether the input taken so far ends with a whole frame.
  private(set) var isAtEnd = false
  /// The magic number of the present frame (little-endian), as far as it has arrived.
  private var magic: UInt32 = 0
  /// How many bytes of the magic number have arrived, 0 to 4.
  private var magicBytes: UInt32 = 0

  init() throws(CodingFailure) {
    guard let stream = ZSTD_createDStream() else { throw .outOfMemory }
    self.stream = stream
    ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, 23)
  }

  deinit { ZSTD_freeDStream(stream) }

  func decode(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(CodingFailure) -> (taken: Int, made: Int) {
    var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
    var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
    while target.pos < target.size {
      // After the end of a frame, the library would wait for another frame.
      if isAtEnd, source.pos == source.size { break }
      try readMagic(input[source.pos...])
      let before = (source.pos, target.pos)
      let rest = ZSTD_decompressStream(stream, &target, &source)
      guard ZSTD_isError(rest) == 0 else { throw .invalid }
      isAtEnd = rest == 0
      if isAtEnd { (magic, magicBytes) = (0, 0) }
      if before == (source.pos, target.pos) { break }
    }
    return (source.pos, target.pos)
  }

  /// Reads the magic number of the present frame, as far as `input` has it, and checks that the frame is a
  /// Zstandard frame or a skippable frame of RFC 8878, section 3.1.
  private func readMagic(_ input: Slice<UnsafeRawBufferPointer>) throws(CodingFailure) {
    guard magicBytes < 4 else { return }
    for byte in input.prefix(Int(4 - magicBytes)) {
      magic |= UInt32(byte) << (8 * magicBytes)
      magicBytes += 1
    }
    guard magicBytes < 4 || magic == 0xfd2f_b528 || magic & ~15 == 0x184d_2a50 else { throw .invalid }
  }
}
