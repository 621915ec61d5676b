import Glibc

/// The position of one piece `k=v` of a canonical query. The members are offsets in the buffer that contains
/// the query.
struct EncodedPiece {
  /// The offset of the first byte of the key.
  let start: Int
  /// The offset of the "=".
  let equals: Int
  /// The offset after the last byte of the value.
  let end: Int

  /// Decodes each piece of a query and encodes it in canonical form, in the order of the query.
  ///
  /// - Parameters:
  ///   - plus: whether "+" stands for a space.
  ///   - out: the buffer for the canonical pieces, without "&" between them. Must have room for four times
  ///     the size of the query, plus 1 byte.
  ///   - pieces: gets the position of each piece in `out`.
  static func encode(
    _ query: UnsafeBufferPointer<UInt8>, plus: Bool, into out: UnsafeMutableBufferPointer<UInt8>,
    _ pieces: inout [EncodedPiece]
  ) {
    /// The number of bytes in `out`.
    var end = 0
    /// The offset in `out` of the current piece.
    var start = 0
    /// The offset in `out` of the "=" of the current piece; -1 before it.
    var equals = -1
    /// The offset in `query` of the next byte to read.
    var index = 0
    while index <= query.count {
      // The end of the query ends the last piece, as "&" does.
      var byte = index < query.count ? query[index] : 0x26
      index += 1
      if byte == 0x26 {
        if equals < 0 {
          equals = end
          out[end] = 0x3d
          end += 1
        }
        pieces.append(EncodedPiece(start: start, equals: equals, end: end))
        start = end
        equals = -1
        continue
      }
      if byte == 0x3d, equals < 0 {
        equals = end
        out[end] = 0x3d
        end += 1
        continue
      }
      if byte == 0x25, index + 1 < query.count, let high = Hex.digit(query[index]),
        let low = Hex.digit(query[index + 1])
      {
        byte = high << 4 | low
        index += 2
      } else if plus, byte == 0x2b {
        byte = 0x20
      }
      if ByteClass.isUnreserved(byte) {
        out[end] = byte
        end += 1
      } else {
        out[end] = 0x25
        out[end + 1] = digit(byte >> 4)
        out[end + 2] = digit(byte & 15)
        end += 3
      }
    }
  }

  /// Returns the hexadecimal digit for a number from 0 to 15.
  private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }

  /// Whether the piece comes before another piece in canonical order: by the bytes of the keys, and for equal
  /// keys in the order of the query.
  func precedes(_ other: EncodedPiece, in buffer: UnsafeBufferPointer<UInt8>) -> Bool {
    let keys = Self.order(start, equals, other.start, other.equals, buffer)
    return keys == 0 ? start < other.start : keys < 0
  }

  /// Compares the bytes of two ranges of `buffer`. Returns a negative number if `start..<end` comes first, 0
  /// if the bytes are equal, and a positive number if `otherStart..<otherEnd` comes first.
  private static func order(
    _ start: Int, _ end: Int, _ otherStart: Int, _ otherEnd: Int, _ buffer: UnsafeBufferPointer<UInt8>
  ) -> Int {
    guard let base = buffer.baseAddress else { return 0 }
    let shared = memcmp(base + start, base + otherStart, min(end - start, otherEnd - otherStart))
    return shared == 0 ? (end - start) - (otherEnd - otherStart) : Int(shared)
  }
}
