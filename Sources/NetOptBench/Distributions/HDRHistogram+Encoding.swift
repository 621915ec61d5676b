import FoundationEssentials

extension HDRHistogram {
  /// The reason why a text is not an encoded histogram with this type's digits and range.
  package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong with the text, for a message: "it is not base64".
    package let description: String
  }

  /// The first four bytes of the uncompressed data in HdrHistogram's V2 encoding.
  private static let cookie: UInt32 = 0x1c84_9313
  /// The first four bytes of HdrHistogram's V2 compressed encoding.
  private static let compressedCookie: UInt32 = 0x1c84_9314
  /// The size in bytes of the header before the counters, cookie included.
  private static let headerSize = 40

  /// The histogram in HdrHistogram's V2 compressed encoding, in base64. The encoding is a cookie, the length
  /// of the compressed data, and the data compressed with zlib. The data is a header and the counters as
  /// ZigZag LEB128 numbers. A negative number -n stands for n counters that are zero.
  package var encoded: String {
    var counters: [UInt8] = []
    var next = 0
    for (index, count) in counted {
      if index > next { Self.append(-Int64(index - next), to: &counters) }
      Self.append(Int64(count), to: &counters)
      next = index + 1
    }
    var payload: [UInt8] = []
    Self.append(Self.cookie, to: &payload)
    Self.append(UInt32(counters.count), to: &payload)
    Self.append(UInt32(0), to: &payload)
    Self.append(UInt32(Self.digits), to: &payload)
    Self.append(UInt64(1), to: &payload)
    Self.append(UInt64(Self.highest), to: &payload)
    Self.append((1.0).bitPattern, to: &payload)
    let compressed = Zlib.compress(payload + counters)
    var whole: [UInt8] = []
    Self.append(Self.compressedCookie, to: &whole)
    Self.append(UInt32(compressed.count), to: &whole)
    return Data(whole + compressed).base64EncodedString()
  }

  /// Decodes a histogram.
  ///
  /// - Parameter text: the text that `encoded` returned, or that another program wrote in the same encoding.
  /// - Throws: `Fault` when the text is not an encoded histogram, or when its number of digits or its range
  ///   of values differs from this type's.
  package init(encoded text: String) throws(Fault) {
    guard let data = Data(base64Encoded: text) else { throw Fault(description: "it is not base64") }
    let whole = [UInt8](data)
    guard whole.count >= 8, Self.number(whole, 0, UInt32.self) == Self.compressedCookie else {
      throw Fault(description: "it is not a histogram in HdrHistogram's V2 compressed encoding")
    }
    let length = Int(Self.number(whole, 4, UInt32.self))
    guard length == whole.count - 8 else { throw Fault(description: "its length is not the stated length") }
    let payload: [UInt8]
    do throws(Zlib.Failure) {
      // An encoded number takes at most 9 bytes.
      payload = try Zlib.decompress(Array(whole[8...]), upTo: Self.headerSize + 9 * Self.mostCounters + 1)
    } catch {
      throw Fault(description: "its content cannot be decompressed")
    }
    guard payload.count >= Self.headerSize, Self.number(payload, 0, UInt32.self) == Self.cookie,
      Int(Self.number(payload, 4, UInt32.self)) == payload.count - Self.headerSize
    else { throw Fault(description: "its header is not a header of the V2 encoding") }
    guard Self.number(payload, 8, UInt32.self) == 0,
      Self.number(payload, 12, UInt32.self) == UInt32(Self.digits),
      Self.number(payload, 16, UInt64.self) == 1,
      Self.number(payload, 24, UInt64.self) == UInt64(Self.highest),
      Double(bitPattern: Self.number(payload, 32, UInt64.self)) == 1
    else {
      throw Fault(description: "it does not have 3 significant digits for values from 1 to \(Self.highest)")
    }
    self.init()
    var rest = payload[Self.headerSize...]
    var index = 0
    while !rest.isEmpty {
      guard let value = Self.next(&rest) else { throw Fault(description: "its counters are truncated") }
      if value < 0 {
        guard value > -Int64(Self.mostCounters) - 1 else {
          throw Fault(description: "it has too many counters")
        }
        index += Int(-value)
      } else {
        guard index < Self.mostCounters else { throw Fault(description: "it has too many counters") }
        add(UInt64(value), at: index)
        index += 1
      }
    }
    guard index <= Self.mostCounters else { throw Fault(description: "it has too many counters") }
  }

  /// Appends an integer in big-endian order.
  private static func append<Number: FixedWidthInteger>(_ number: Number, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
  }

  /// Reads the big-endian integer that begins at index `start`.
  private static func number<Number: FixedWidthInteger & UnsignedInteger>(
    _ bytes: [UInt8], _ start: Int, _: Number.Type
  ) -> Number {
    bytes[start..<start + MemoryLayout<Number>.size].reduce(0) { $0 << 8 | Number($1) }
  }

  /// Appends a number in ZigZag LEB128 encoding: 7 bits per byte, the lowest bits first. The highest bit of a
  /// byte says that another byte follows. The ninth byte is the last one and holds 8 bits.
  private static func append(_ value: Int64, to bytes: inout [UInt8]) {
    var rest = UInt64(bitPattern: (value << 1) ^ (value >> 63))
    for _ in 0..<8 {
      if rest < 0x80 { break }
      bytes.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  /// Removes a ZigZag LEB128 number from the front of the bytes and returns it; `nil` when the bytes end
  /// within the number.
  private static func next(_ bytes: inout ArraySlice<UInt8>) -> Int64? {
    var value: UInt64 = 0
    for byteIndex in 0..<9 {
      guard let byte = bytes.popFirst() else { return nil }
      if byteIndex == 8 {
        value |= UInt64(byte) << 56
        break
      }
      value |= UInt64(byte & 0x7f) << UInt64(7 * byteIndex)
      if byte & 0x80 == 0 { break }
    }
    return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
  }
}
