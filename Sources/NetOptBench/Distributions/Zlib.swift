import CZlib

/// Compression in the format of zlib (RFC 1950), for data that is in memory as a whole.
package enum Zlib {
  /// Why data could not be decompressed.
  package enum Failure: Error, Hashable, Sendable {
    /// It is not in zlib's format, or broken off.
    case invalid
    /// It would take more bytes than were allowed.
    case tooLarge
  }

  /// Compresses data: https://zlib.net/manual.html#Utility.
  package static func compress(_ bytes: [UInt8]) -> [UInt8] {
    var length = compressBound(uLong(bytes.count))
    var out = [UInt8](repeating: 0, count: Int(length))
    let code = CZlib.compress2(&out, &length, bytes, uLong(bytes.count), Z_DEFAULT_COMPRESSION)
    // With room for `compressBound` bytes nothing is left that could fail but memory, without which Swift ends too.
    precondition(code == Z_OK, "zlib refused to compress: \(code)")
    out.removeLast(out.count - Int(length))
    return out
  }

  /// Decompresses data.
  ///
  /// - Parameter limit: the most bytes that it may take: a few bytes can stand for gigabytes.
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
