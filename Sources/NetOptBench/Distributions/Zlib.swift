import CZlib

/// Compression in the zlib format (RFC 1950), for data that is in memory as a whole.
package enum Zlib {
  /// The reason why data could not be decompressed.
  package enum Failure: Error, Hashable, Sendable {
    /// The data is not in the zlib format, or is incomplete.
    case invalid
    /// The decompressed data exceeds the limit.
    case tooLarge
  }

  /// Compresses data with zlib's default level (https://zlib.net/manual.html#Utility).
  package static func compress(_ bytes: [UInt8]) -> [UInt8] {
    var length = compressBound(uLong(bytes.count))
    var out = [UInt8](repeating: 0, count: Int(length))
    let code = CZlib.compress2(&out, &length, bytes, uLong(bytes.count), Z_DEFAULT_COMPRESSION)
    // A buffer of `compressBound` bytes is always large enough. Compression then fails only when memory runs
    // out, and Swift terminates the process in that case too.
    precondition(code == Z_OK, "zlib refused to compress: \(code)")
    out.removeLast(out.count - Int(length))
    return out
  }

  /// Decompresses data.
  ///
  /// - Parameter limit: the maximum size of the decompressed data, in bytes. The limit protects the memory: a
  ///   few compressed bytes can expand to gigabytes.
  package static func decompress(_ bytes: [UInt8], upTo limit: Int) throws(Failure) -> [UInt8] {
    var length = uLong(limit)
    var out = [UInt8](repeating: 0, count: limit)
    switch CZlib.uncompress(&out, &length, bytes, uLong(bytes.count)) {
    case Z_OK: break
    case Z_BUF_ERROR where Int(length) >= limit: throw .tooLarge
    default: throw .invalid
    }
    out.removeLast(out.count - Int(length))
    return out
  }
}
