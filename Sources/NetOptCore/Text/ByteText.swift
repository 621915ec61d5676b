/// Writes texts as bytes, so that a message to be signed is built without an intermediate `String`.
extension [UInt8] {
  /// Appends a text in UTF-8.
  package mutating func append(text: String) {
    // Append the bytes through a buffer: appending the `utf8` view uses a function that is not specialized
    // for arrays.
    var text = text
    text.withUTF8 { append(contentsOf: $0) }
  }

  /// Appends a text in UTF-8.
  package mutating func append(text: StaticString) { text.withUTF8Buffer { append(contentsOf: $0) } }

  /// Appends the lowest digits of a number in hexadecimal, in lower case.
  ///
  /// - Parameter digits: how many digits, at most 16. Leading digits may be 0.
  package mutating func append(hex number: UInt64, digits: Int) {
    var shift = 4 * digits
    while shift > 0 {
      shift -= 4
      let digit = UInt8(truncatingIfNeeded: number >> UInt64(shift)) & 15
      append(digit < 10 ? 0x30 + digit : 0x57 + digit)
    }
  }

  /// Appends a number as decimal digits.
  package mutating func append(decimal number: Int64) {
    if number < 0 { append(0x2d) }
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { room in
      var start = 20
      var rest = number.magnitude
      repeat {
        start -= 1
        room[start] = 0x30 + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      append(contentsOf: UnsafeBufferPointer(rebasing: room[start...]))
    }
  }

  /// Appends bytes as hexadecimal digits in lower case.
  package mutating func append(hex bytes: [UInt8]) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 2 * bytes.count) { room in
      Hex.write(bytes, to: room)
      append(contentsOf: UnsafeBufferPointer(room))
    }
  }
}

/// Converts bytes to hexadecimal digits, and back.
@usableFromInline package enum Hex {
  /// The ASCII codes of the sixteen digits in lower case. The index of a code is the value of the digit.
  @usableFromInline package static let lower = Array("0123456789abcdef".utf8)
  /// The ASCII codes of the sixteen digits in upper case.
  @usableFromInline package static let upper = Array("0123456789ABCDEF".utf8)

  /// Returns bytes as hexadecimal digits in lower case.
  package static func text(_ bytes: [UInt8]) -> String {
    String(unsafeUninitializedCapacity: 2 * bytes.count) { room in
      write(bytes, to: room)
      return 2 * bytes.count
    }
  }

  /// Writes bytes as hexadecimal digits in lower case.
  ///
  /// - Parameter room: a buffer of at least twice the size of `bytes`.
  package static func write(_ bytes: [UInt8], to room: UnsafeMutableBufferPointer<UInt8>) {
    var start = 0
    // Convert four bytes at a time in one word: the sizes of digests and authentication codes are multiples
    // of four.
    while start + 4 <= bytes.count {
      let four = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: start, as: UInt32.self) }
      var word = UInt64(UInt32(littleEndian: four))
      word = (word | word << 16) & 0x0000_ffff_0000_ffff
      word = (word | word << 8) & 0x00ff_00ff_00ff_00ff
      word = word >> 4 & 0x000f_000f_000f_000f | (word & 0x000f_000f_000f_000f) << 8
      // For a digit value of 10 or more, adding 6 sets bit 4.
      let letters = (word &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
      word = word &+ 0x3030_3030_3030_3030 &+ letters &* 0x27
      UnsafeMutableRawBufferPointer(room).storeBytes(
        of: word.littleEndian, toByteOffset: 2 * start, as: UInt64.self)
      start += 4
    }
    for index in start..<bytes.count {
      let (high, low) = (bytes[index] >> 4, bytes[index] & 15)
      room[2 * index] = high < 10 ? 0x30 + high : 0x57 + high
      room[2 * index + 1] = low < 10 ? 0x30 + low : 0x57 + low
    }
  }

  /// Returns the bytes that a text of hexadecimal digits in lower case represents. `nil` if the text has an
  /// odd length, or contains anything but these digits.
  @inlinable
  package static func bytes(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count % 2 == 0 else { return nil }
    var out: [UInt8] = []
    out.reserveCapacity(text.count / 2)
    var high: UInt8?
    for byte in text {
      guard let digit = lowerDigit(byte) else { return nil }
      if let first = high {
        out.append(first << 4 | digit)
        high = nil
      } else {
        high = digit
      }
    }
    return out
  }

  /// Returns the value of a hexadecimal digit in lower case; `nil` for any other byte.
  @inlinable
  static func lowerDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x61...0x66: byte - 0x57
    default: nil
    }
  }

  /// Returns the value of a hexadecimal digit in either case; `nil` for any other byte.
  @inlinable
  package static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x37
    case 0x61...0x66: byte - 0x57
    default: nil
    }
  }
}

/// Tests for the classes of bytes that HTTP and URLs distinguish.
@usableFromInline package enum ByteClass {
  /// Whether the byte is an ASCII digit.
  @inlinable
  package static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
  /// Whether the byte is a space or a tab: the white space of a field line (OWS; RFC 9110, section 5.6.3).
  /// Line ends do not count.
  @inlinable
  package static func isSpaceOrTab(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  /// Whether the byte is a letter, a digit, "-", ".", "_" or "~" (RFC 3986, section 2.3).
  @inlinable
  package static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e: true
    default: false
    }
  }

  /// Whether a text consists of ASCII letters, digits and "_", and does not begin with a digit: a name of an
  /// environment variable, or a key that a JSON path shows without quotation marks.
  package static func isIdentifier(_ text: String) -> Bool {
    guard let first = text.utf8.first, !isDigit(first) else { return false }
    return all(text) { (0x61...0x7a).contains($0 | 0x20) || $0 == 0x5f || isDigit($0) }
  }

  /// Whether all bytes of a text satisfy a condition. Faster than iterating over the `utf8` view, which
  /// checks at each byte how the text is stored.
  @inlinable
  package static func all(_ text: String, _ isFine: (UInt8) -> Bool) -> Bool {
    var text = text
    return text.withUTF8 { bytes in
      for byte in bytes where !isFine(byte) { return false }
      return true
    }
  }

  /// Whether two field names are equal, ignoring the case of ASCII letters.
  @inlinable
  package static func isSameName(_ a: String, _ b: String) -> Bool {
    guard a.utf8.count == b.utf8.count else { return false }
    var (a, b) = (a, b)
    return a.withUTF8 { a in
      b.withUTF8 { b in
        for index in a.indices where a[index] != b[index] && lowered(a[index]) != lowered(b[index]) {
          return false
        }
        return true
      }
    }
  }

  /// Whether all bytes are visible ASCII characters, spaces or tabs. RFC 9110, section 5.5, recommends only
  /// these for field values.
  @inlinable
  package static func isPlain(_ text: some Sequence<UInt8>) -> Bool {
    text.allSatisfy { (0x20...0x7e).contains($0) || $0 == 0x09 }
  }

  /// Returns the byte, with an ASCII letter converted to lower case.
  @inlinable
  package static func lowered(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }

  /// Returns a text without leading and trailing spaces and tabs.
  @inlinable
  package static func trimmed<Bytes: BidirectionalCollection<UInt8>>(_ text: Bytes) -> Bytes.SubSequence {
    guard let first = text.firstIndex(where: { !isSpaceOrTab($0) }),
      let last = text.lastIndex(where: { !isSpaceOrTab($0) })
    else { return text[text.startIndex..<text.startIndex] }
    return text[first...last]
  }
}
