/// Parses the chunks of a body (RFC 9112, section 7.1) in parallel with libcurl. libcurl ends a chunk size
/// at the first byte that is not a digit, whatever the byte is: it takes `0x5` for the last chunk.
struct ChunkReader: Sendable {
  private enum State: Equatable {
    /// In a chunk size, after this many digits.
    case size(UInt64, digits: Int)
    /// In the white space after a size.
    case blank(UInt64)
    /// In a chunk extension, which is ignored.
    case parameter(UInt64)
    /// After the CR of the size's line.
    case lineEnd(UInt64)
    /// In a chunk's data, with this many bytes left.
    case data(UInt64)
    /// After a chunk's data.
    case end
    /// After the size of the last chunk, or of a chunk that libcurl refuses.
    case done
  }

  /// libcurl's limit for the digits of a size.
  private static let mostDigits = 16

  /// The limit for sizes, extensions and line ends: this many bytes per byte of data, plus `mostBeforeFirst`
  /// bytes in total. Endless extensions carry no data, so no limit for a body ends them (RFC 9112, section
  /// 7.1.1).
  private static let mostPerByte = 64
  private static let mostBeforeFirst = 64 * 1024
  /// The longest line with a size and its extensions, in bytes. After at most this many bytes libcurl
  /// delivers data, and a transfer can pause only then.
  private static let longestLine = 4096

  private var state = State.size(0, digits: 0)
  /// The number of data bytes.
  private(set) var data = 0
  /// The number of bytes that are not data, and how many of them `takeFraming` has reported.
  private var (framing, taken) = (0, 0)
  /// The length of the present line, in bytes.
  private var line = 0

  /// Reads a piece of the body as received.
  ///
  /// - Returns: what is wrong with the piece; `nil` if it is valid.
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

  /// Whether the size of the last chunk was read.
  var hasEnded: Bool { state == .done }

  /// Returns the number of bytes since the last call that are not data.
  mutating func takeFraming() -> Int {
    defer { taken = framing }
    return framing - taken
  }

  private mutating func read(_ byte: UInt8) -> ChunkFault? {
    switch (state, byte) {
    case (.size(let size, let digits), _):
      guard let digit = Self.value(ofDigit: byte) else { return digits > 0 ? end(size, with: byte) : .size }
      state = digits < Self.mostDigits ? .size(size << 4 | digit, digits: digits + 1) : .done
    case (.blank(let size), _): return end(size, with: byte)
    case (.parameter(let size), _): if byte == UInt8(ascii: "\n") { begin(size) }
    case (.lineEnd(let size), UInt8(ascii: "\n")): begin(size)
    case (.lineEnd, _): return .size
    case (.end, UInt8(ascii: "\n")): state = .size(0, digits: 0)
    case (.end, UInt8(ascii: "\r")): break
    case (.end, _): return .end
    case (.data, _), (.done, _): break
    }
    return nil
  }

  /// Reads the byte after a size.
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

  private static func value(ofDigit byte: UInt8) -> UInt64? {
    switch byte {
    case 0x30...0x39: UInt64(byte - 0x30)
    case 0x41...0x46, 0x61...0x66: UInt64((byte | 0x20) - 0x57)
    default: nil
    }
  }

  private mutating func begin(_ size: UInt64) {
    state = size == 0 ? .done : .data(size)
    line = 0
  }
}
