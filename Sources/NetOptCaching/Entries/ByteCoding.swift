/// Encodes numbers and strings one after the other.
struct ByteWriter {
  private(set) var bytes: [UInt8] = []

  mutating func integer(_ number: Int64) {
    var number = number.littleEndian
    withUnsafeBytes(of: &number) { bytes.append(contentsOf: $0) }
  }

  mutating func optional(_ number: Int64?) {
    bytes.append(number == nil ? 0 : 1)
    if let number { integer(number) }
  }

  mutating func count(_ count: Int) {
    precondition(count >= 0 && count <= UInt32.max, "\(count) is no length that can be written")
    var number = UInt32(count).littleEndian
    withUnsafeBytes(of: &number) { bytes.append(contentsOf: $0) }
  }

  mutating func text(_ text: String) {
    count(text.utf8.count)
    bytes.append(contentsOf: text.utf8)
  }
}

/// Decodes the bytes of a `ByteWriter`. Each method returns `nil` when the bytes do not match.
struct ByteReader {
  private let bytes: [UInt8]
  private var offset = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { offset == bytes.count }

  mutating func integer() -> Int64? { number(Int64.self) }

  /// Reads an optional number. `.some(nil)` is a missing number.
  mutating func optional() -> Int64?? {
    guard let flag = number(UInt8.self), flag <= 1 else { return nil }
    if flag == 0 { return .some(nil) }
    return integer().map { .some($0) }
  }

  mutating func count() -> Int? { number(UInt32.self).map(Int.init) }

  mutating func text() -> String? {
    guard let count = count(), count <= bytes.count - offset else { return nil }
    defer { offset += count }
    return String(validating: bytes[offset..<offset + count], as: UTF8.self)
  }

  private mutating func number<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
    let size = MemoryLayout<Number>.size
    guard size <= bytes.count - offset else { return nil }
    defer { offset += size }
    var number: Number = 0
    withUnsafeMutableBytes(of: &number) { $0.copyBytes(from: bytes[offset..<offset + size]) }
    return Number(littleEndian: number)
  }
}
