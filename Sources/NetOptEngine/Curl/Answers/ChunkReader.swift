/// Checks the chunks of a body (RFC 9112, section 7.1), which libcurl parses too. libcurl does not check
/// enough: it ends a chunk size at the first byte that is not a hexadecimal digit, whatever the byte is. So
/// it takes `0x5` for the last chunk.
struct ChunkReader: Sendable {
  /// The position in the body. An associated value without a label is the size of the present chunk in bytes,
  /// unless the case says otherwise.
  private enum State: Equatable {
    /// In a chunk size, after this many digits. The first value is the number that these digits mean.
    case size(UInt64, digits: Int)
    /// In the white space after a size, before the extensions or the line end.
    case blank(UInt64)
    /// In a chunk extension, which is ignored.
    case parameter(UInt64)
    /// After the CR at the end of the line with the size, before the LF.
    case lineEnd(UInt64)
    /// In a chunk's data, with this many bytes left.
    case data(UInt64)
    /// After a chunk's data, before the line end that follows the data.
    case end
    /// After the CR of this line end, before its LF.
    case endAfterCR
    /// After the size of the last chunk, or of a chunk that libcurl refuses.
    case done
  }

  /// The maximum number of digits of a size that libcurl accepts.
  private static let mostDigits = 16

  /// The limit for the bytes of sizes, extensions and line ends: this many per byte of data, plus
  /// `mostBeforeFirst`. Limits for the size of a body do not count these bytes. Without this limit, a server
  /// could send extensions without end (RFC 9112, section 7.1.1).
  private static let mostPerByte = 64
  private static let mostBeforeFirst = 64 * 1024
  /// The maximum length in bytes of a line with a size and its extensions. A transfer can pause only when
  /// libcurl delivers data, and libcurl delivers none while it reads such a line.
  private static let longestLine = 4096

  private var state = State.size(0, digits: 0)
  /// Whether the last line with a size ended with CR LF, and not with LF alone. The data must then end so
  /// too.
  private var usesCR = false
  /// The last byte read that is not data.
  private var previous: UInt8 = 0
  /// The number of data bytes read so far.
  private(set) var data = 0
  /// The number of bytes read so far that are not data, and how many of them `takeFraming` has reported.
  private var (framing, taken) = (0, 0)
  /// The number of bytes read so far of the present line with a size, and of the line end that precedes this
  /// line. Compared with `longestLine`.
  private var line = 0

  /// Checks the next piece of the body, as received. A piece may begin and end anywhere.
  ///
  /// - Returns: the fault; `nil` if the body is valid so far.
  mutating func read(_ bytes: UnsafeRawBufferPointer) -> ChunkFault? {
    var index = 0
    while index < bytes.count, state != .done {
      if case .data(let left) = state {
        let skipped = min(left, UInt64(bytes.count - index))
        index += Int(skipped)
        data += Int(skipped)
        state = skipped == left ? .end : .data(left - skipped)
        continue
      }
      if let fault = read(bytes[index]) { return fault }
      index += 1
      framing += 1
      line += 1
      if line > Self.longestLine { return .longLine }
    }
    return framing > Self.mostBeforeFirst + Self.mostPerByte * data ? .framing : nil
  }

  /// Whether the size 0 of the last chunk was read, or a size that libcurl refuses.
  var hasEnded: Bool { state == .done }

  /// Returns the number of bytes read since the last call that are not data.
  mutating func takeFraming() -> Int {
    defer { taken = framing }
    return framing - taken
  }

  /// Reads a byte that is not data.
  private mutating func read(_ byte: UInt8) -> ChunkFault? {
    defer { previous = byte }
    switch (state, byte) {
    case (.size(let size, let digits), _):
      guard let digit = Self.value(ofDigit: byte) else { return digits > 0 ? end(size, with: byte) : .size }
      state = digits < Self.mostDigits ? .size(size << 4 | digit, digits: digits + 1) : .done
    case (.blank(let size), _): return end(size, with: byte)
    case (.parameter(let size), _): if byte == UInt8(ascii: "\n") { begin(size) }
    case (.lineEnd(let size), UInt8(ascii: "\n")): begin(size)
    case (.lineEnd, _): return .size
    // After a size that is one too large, the CR of the line end counts as data, and the LF is alone.
    case (.end, UInt8(ascii: "\n")) where !usesCR, (.endAfterCR, UInt8(ascii: "\n")):
      state = .size(0, digits: 0)
    case (.end, UInt8(ascii: "\r")): state = .endAfterCR
    case (.end, _), (.endAfterCR, _): return .end
    case (.data, _), (.done, _): break
    }
    return nil
  }

  /// Reads the byte that follows the digits of a size, or follows white space after these digits.
  private mutating func end(_ size: UInt64, with byte: UInt8) -> ChunkFault? {
    switch byte {
    case UInt8(ascii: " "), UInt8(ascii: "\t"): state = .blank(size)
    case UInt8(ascii: ";"): state = .parameter(size)
    case UInt8(ascii: "\r"): state = .lineEnd(size)
    case UInt8(ascii: "\n"): begin(size)
    default: return .size
    }
    return nil
  }

  /// Returns the value of a hexadecimal digit in either case; `nil` for any other byte.
  private static func value(ofDigit byte: UInt8) -> UInt64? {
    switch byte {
    case 0x30...0x39: UInt64(byte - 0x30)
    case 0x41...0x46, 0x61...0x66: UInt64((byte | 0x20) - 0x57)
    default: nil
    }
  }

  /// Begins the data of a chunk. A chunk without data is the last one.
  private mutating func begin(_ size: UInt64) {
    usesCR = previous == UInt8(ascii: "\r")
    state = size == 0 ? .done : .data(size)
    line = 0
  }
}
