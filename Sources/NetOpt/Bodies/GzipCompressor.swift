import CZlib
import NetOptCore

/// Compresses one message with gzip: https://zlib.net/manual.html#Advanced. Only one task at a time may use
/// it.
final class GzipCompressor {
  /// zlib's state, owned by this object. zlib keeps pointers to the state, so it must not move.
  private let stream: UnsafeMutablePointer<z_stream>
  /// Where zlib writes its output.
  private var buffer = [UInt8](repeating: 0, count: 64 << 10)

  /// - Parameter level: the level of compression, 1 to 9.
  /// - Throws: `libraryFailed` if zlib has no memory.
  init(_ level: Int) throws(NetOptError) {
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    // deflateInit2 is a macro for this. The window has 2^15 bytes; 16 more stand for the gzip format. 8 is
    // zlib's default for the memory of the search.
    let code = deflateInit2_(
      stream, Int32(level), Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    guard code == Z_OK else { throw Self.failure(code) }
  }

  deinit {
    // Does nothing to a stream that was not initialised: zlib checks its pointers.
    deflateEnd(stream)
    stream.deallocate()
  }

  /// Compresses the next bytes of the message.
  ///
  /// - Parameters:
  ///   - bytes: the next bytes.
  ///   - isLast: whether they end the message.
  /// - Returns: the compressed bytes that zlib gives out now; may be empty.
  func compress(_ bytes: [UInt8], isLast: Bool) throws(NetOptError) -> [UInt8] {
    var out: [UInt8] = []
    var rest = bytes[...]
    repeat {
      // zlib counts in 32 bits.
      let piece = rest.prefix(1 << 30)
      rest = rest[piece.endIndex...]
      out += try compress(piece, flush: isLast && rest.isEmpty ? Z_FINISH : Z_NO_FLUSH)
    } while !rest.isEmpty
    return out
  }

  private func compress(_ piece: ArraySlice<UInt8>, flush: Int32) throws(NetOptError) -> [UInt8] {
    var out: [UInt8] = []
    // zlib reads the piece and does not keep or change it.
    let code = piece.withUnsafeBytes { input -> Int32 in
      stream.pointee.next_in = UnsafeMutablePointer(
        mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
      stream.pointee.avail_in = UInt32(input.count)
      var code: Int32 = Z_OK
      repeat {
        let made = buffer.withUnsafeMutableBufferPointer { output -> Int in
          stream.pointee.next_out = output.baseAddress
          stream.pointee.avail_out = UInt32(output.count)
          code = deflate(stream, flush)
          return output.count - Int(stream.pointee.avail_out)
        }
        out += buffer[..<made]
      } while stream.pointee.avail_out == 0 && code == Z_OK
      return code
    }
    // Z_BUF_ERROR means that there was nothing to do.
    guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else { throw Self.failure(code) }
    return out
  }

  private static func failure(_ code: Int32) -> NetOptError {
    NetOptError(.libraryFailed, phase: .send, "zlib cannot compress the body: it returned \(code)")
  }
}
