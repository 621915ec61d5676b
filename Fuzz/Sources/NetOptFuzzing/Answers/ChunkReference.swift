extension AnswerReference {
  /// Section 7.1: the body that chunks make, and their end with its trailers.
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

  /// The line before a chunk: digits, and extensions that mean nothing here.
  private mutating func chunkSize() throws(ReferenceEnding) -> Int {
    let line = try line()
    let digits = line.prefix(while: Self.isHexDigit)
    if digits.isEmpty {
      // Spaces before the digits are for each client to decide.
      if line.first == 0x20 || line.first == 0x09 { throw .open }
      throw .broken("there is no size of a chunk")
    }
    if digits.count < line.count { isStrict = false }
    let behind = line[digits.endIndex...].drop { $0 == 0x20 || $0 == 0x09 }
    guard behind.isEmpty || behind.first == 0x3b else {
      throw .broken("a size is followed by something else")
    }
    let significant = digits.drop { $0 == 0x30 }
    guard significant.count < 16 else { throw .broken("the chunk is too large") }
    if digits.count > 15 { isStrict = false }
    return Int(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0
  }

  /// The end of a chunk: CR LF, or LF with any number of CR before it.
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

  /// Section 7.1.2: up to an empty line. Of that a part is enough for a client, when there are no trailers.
  private mutating func trailers() throws(ReferenceEnding) {
    if index >= bytes.count || bytes[index...] == [0x0d] { throw .open }
    while true {
      let line = try line()
      if line.isEmpty { return }
      // What is wrong with a trailer may be a reason to refuse the message, and an unfinished one is to some no trailer.
      isStrict = false
      if line.contains(where: { $0 == 0 || $0 == 0x0d }) || !bytes[index...].contains(0x0a) { throw .open }
    }
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    isDigit(byte) || (0x61...0x66).contains(byte | 0x20)
  }
}
