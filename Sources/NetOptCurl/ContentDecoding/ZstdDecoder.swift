import CZstd

/// Undoes the coding zstd (RFC 8878), which may have several frames. Windows over 8 MiB are refused (RFC 9659).
final class ZstdDecoder: CodingDecoder {
  private let stream: OpaquePointer
  /// Whether the last frame came to its end.
  private(set) var isAtEnd = false

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
      // Behind a frame's end the decoder would wait for another one.
      if isAtEnd, source.pos == source.size { break }
      let before = (source.pos, target.pos)
      let rest = ZSTD_decompressStream(stream, &target, &source)
      guard ZSTD_isError(rest) == 0 else { throw .invalid }
      isAtEnd = rest == 0
      if before == (source.pos, target.pos) { break }
    }
    return (source.pos, target.pos)
  }
}
