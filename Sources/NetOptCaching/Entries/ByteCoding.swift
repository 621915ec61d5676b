/// Encodes numbers and strings one after the other. `ByteReader` decodes them in the same order.
struct ByteWriter {
  /// The bytes written so far.
  private(set) var bytes: [UInt8] = []

  /// Appends a number as eight bytes, little-endian.
  mutating func integer(_ number: Int64) {
    var number = number.littleEndian
    withUnsafeBytes(of: &number) { bytes.append(contentsOf: $0) }
  }

  /// Appends the byte 1 and the number as eight bytes, or only the byte 0 for `nil`.
  mutating func optional(_ number: Int64?) {
    bytes.append(number == nil ? 0 : 1)
    if let number { integer(number) }
  }

  /// Appends a count from 0 to 2^32 - 1 as four bytes, little-endian.
  mutating func count(_ count: Int) {
    precondition(count >= 0 && count <= UInt32.max, "\(count) is no length that can be written")
    var number = UInt32(count).littleEndian
    withUnsafeBytes(of: &number) { bytes.append(contentsOf: $0) }
  }

  /// Appends the number of bytes of a string, as `count` does, and then its bytes in UTF-8.
  mutating func text(_ text: String) {
    count(text.utf8.count)
    bytes.append(contentsOf: text.utf8)
  }
}

/// Decodes the bytes that a `ByteWriter` has written. Each method reads the next value. It returns `nil` when
/// too few bytes are left, or when they are not a value of this kind.
struct ByteReader {
  private let bytes: [UInt8]
  /// The index of the first byte that was not read.
  private var offset = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Whether all bytes were read.
  var isAtEnd: Bool { offset == bytes.count }

  /// Reads a number that `ByteWriter.integer` has written.
  mutating func integer() -> Int64? { number(Int64.self) }

  /// Reads an optional number. The result is `.some(nil)` when the writer wrote `nil`, and `nil` when the
  /// bytes are invalid.
  mutating func optional() -> Int64?? {
    guard let flag = number(UInt8.self), flag <= 1 else { return nil }
    if flag == 0 { return .some(nil) }
    return integer().map { .some($0) }
  }

  /// Reads a count that `ByteWriter.count` has written.
  mutating func count() -> Int? { number(UInt32.self).map(Int.init) }

  /// Reads a string that `ByteWriter.text` has written; `nil` also when its bytes are not UTF-8.
  mutating func text() -> String? {
    guard let count = count(), count <= bytes.count - offset else { return nil }
    defer { offset += count }
    return String(validating: bytes[offset..<offset + count], as: UTF8.self)
  }

  /// Reads a little-endian number of the given type.
  private mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
    let size = MemoryLayout<Number>.size
    guard size <= bytes.count - offset else { return nil }
    defer { offset += size }
    var number: Number = 0
    withUnsafeMutableBytes(of: &number) { $0.copyBytes(from: bytes[offset..<offset + size]) }
    return Number(littleEndian: number)
  }
}
