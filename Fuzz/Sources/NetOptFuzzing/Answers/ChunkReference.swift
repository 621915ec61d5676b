extension AnswerReference {
  /// Reads the chunks of a body, the last chunk and the trailers (section 7.1).
  ///
  /// - Returns: the body without the sizes and line ends of its chunks.
  mutating func chunks() throws(ReferenceEnding) -> [UInt8] {
    var body: [UInt8] = []
    while true {
      let size = try chunkSize()
      if size == 0 { break }
      guard size <= bytes.count - index else { throw .broken("the connection ends in a chunk") }
      body += bytes[index..<index + size]
      index += size
      try chunkEnd()
    }
    try trailers()
    if index < bytes.count { isStrict = false }
    return body
  }

  /// Reads the line before a chunk: the size in hexadecimal digits, and chunk extensions, which are ignored.
  ///
  /// - Returns: the size in bytes; 0 for the last chunk.
  private mutating func chunkSize() throws(ReferenceEnding) -> Int {
    let line = try line()
    let digits = line.prefix(while: Self.isHexDigit)
    if digits.isEmpty {
      // A client may accept or reject spaces before the digits.
      if line.first == 0x20 || line.first == 0x09 { throw .open }
      throw .broken("there is no size of a chunk")
    }
    if digits.count < line.count { isStrict = false }
    let behind = line[digits.endIndex...].drop { $0 == 0x20 || $0 == 0x09 }
    guard behind.isEmpty || behind.first == 0x3b else {
      throw .broken("a size is followed by something else")
    }
    // Fewer than 16 digits fit into 63 bits. A client may limit the number of digits, with leading zeros.
    let significant = digits.drop { $0 == 0x30 }
    guard significant.count < 16 else { throw .broken("the chunk is too large") }
    if digits.count > 15 { isStrict = false }
    return Int(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0
  }

  /// Reads the end of a chunk: CR LF, or LF after any number of CR.
  private mutating func chunkEnd() throws(ReferenceEnding) {
    if bytes[index...].starts(with: [0x0d, 0x0a]) {
      index += 2
      return
    }
    isStrict = false
    while index < bytes.count, bytes[index] == 0x0d { index += 1 }
    guard index < bytes.count, bytes[index] == 0x0a else { throw .broken("the chunk does not end") }
    index += 1
  }

  /// Reads the trailers up to the empty line (section 7.1.2), and ignores them. If the connection ends right
  /// after the last chunk, or within the empty line after it, a client may accept or reject the response.
  private mutating func trailers() throws(ReferenceEnding) {
    if index >= bytes.count || bytes[index...] == [0x0d] { throw .open }
    while true {
      let line = try line()
      if line.isEmpty { return }
      // A client may limit the trailers. It may also reject the response because of NUL or CR in a trailer,
      // and accept it although the trailers do not end.
      isStrict = false
      if line.contains(where: { $0 == 0 || $0 == 0x0d }) || !bytes[index...].contains(0x0a) { throw .open }
    }
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    isDigit(byte) || (0x61...0x66).contains(byte | 0x20)
  }
}
