/// Follows the chunks of a body (RFC 9112, section 7.1) beside libcurl, which takes a size up to the first byte that is no digit, whatever
/// that is: `0x5` is its last chunk.
struct ChunkReader: Sendable {
  private enum State: Equatable {
    /// In a size of so many digits so far.
    case size(UInt64, digits: Int)
    /// Behind a size, in blanks.
    case blank(UInt64)
    /// In an extension, which nobody reads.
    case parameter(UInt64)
    /// Behind the CR of a size's line.
    case lineEnd(UInt64)
    /// In a chunk's data, with so many bytes to come.
    case data(UInt64)
    /// Behind a chunk's data.
    case end
    /// Behind the size of the last chunk, or of one that libcurl refuses.
    case done
  }

  /// libcurl's limit.
  private static let mostDigits = 16

  /// How much sizes, extensions and line ends may have for each byte of data, and beyond that once. Extensions without end bring nothing, which no
  /// limit of a body ends (RFC 9112, section 7.1.1).
  private static let mostPerByte = 64
  private static let mostBeforeFirst = 64 * 1024
  /// How long the line of a size may be, with its extensions: data comes at least that often, and then a transfer can pause.
  private static let longestLine = 4096

  private var state = State.size(0, digits: 0)
  /// How many bytes of data came.
  private(set) var data = 0
  /// How many bytes were no data, and how many of them were taken.
  private var (framing, taken) = (0, 0)
  /// How long the line is until now.
  private var line = 0

  /// Reads a piece of the body as it came.
  ///
  /// - Returns: what is wrong with it.
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

  /// How many bytes were no data since this was last asked.
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

  /// Reads what follows a size.
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
