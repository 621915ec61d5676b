/// Reads the response to the first request of an HTTP/2 connection as RFC 9113 says; simple, but slow. A
/// malformed message, a stream error or a connection error makes the response broken. A point in which
/// implementations differ makes it not strict.
struct FrameReference {
  /// A frame (section 4.1).
  struct Frame {
    let kind: UInt8
    let flags: UInt8
    let stream: UInt32
    var payload: ArraySlice<UInt8>

    func has(_ flag: UInt8) -> Bool { flags & flag != 0 }

    /// A number of four bytes in the payload.
    func number(at offset: Int) -> UInt32 {
      payload.dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Removes the padding (section 6.1).
    mutating func unpad() throws(ReferenceEnding) {
      guard has(0x8) else { return }
      guard let count = payload.popFirst(), payload.count >= Int(count) else {
        throw .broken("the padding is longer than the frame")
      }
      payload = payload.dropLast(Int(count))
    }
  }

  private var bytes: ArraySlice<UInt8>
  private var blocks = FieldBlockReader()
  private var message = MessageReference()
  private var control = ControlReference()
  private var continuations = 0
  /// The field block that is being read, and whether the stream ends with it.
  private var block: (bytes: [UInt8], ends: Bool)?

  /// Reads the response on stream 1 from the bytes that the server sends after its SETTINGS.
  static func read(_ bytes: [UInt8]) -> ReferenceAnswer {
    var reference = FrameReference(bytes: bytes[...])
    do throws(ReferenceEnding) {
      while try !reference.frame() {}
      // The client may read the bytes after the response together with its end, and reject the response
      // because of them.
      let isStrict = reference.bytes.isEmpty && reference.control.isStrict && reference.continuations <= 8
      return .whole(try reference.message.answer(isStrict: isStrict))
    } catch {
      // All announced bytes arrived although the stream did not end: no byte of the body can be missing.
      if let answer = reference.message.answerByLength { return .whole(answer) }
      return error.answer
    }
  }

  private init(bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  private mutating func next() throws(ReferenceEnding) -> Frame {
    guard bytes.count >= 9 else { throw .broken("the connection ends before the answer does") }
    let head = Array(bytes.prefix(9))
    let length = head[..<3].reduce(0) { $0 << 8 | Int($1) }
    // Section 4.2: 16,384 bytes unless the client allows more, which it does not.
    guard length <= 16_384 else { throw .broken("a frame is too large") }
    let stream = head[5...].reduce(0) { $0 << 8 | UInt32($1) } & 0x7fff_ffff
    guard bytes.count - 9 >= length else {
      // The client may deliver the received part of a DATA frame, and that part may complete the body.
      if head[3] == 0, stream == 1, block == nil {
        let part = bytes.dropFirst(9)
        let isPadded = head[4] & 0x8 != 0
        let padding = isPadded ? 1 + Int(part.first ?? 0) : 0
        try message.take(data: part.dropFirst(isPadded ? 1 : 0).prefix(max(0, length - padding)))
      }
      throw .broken("the connection ends in a frame")
    }
    defer { bytes = bytes.dropFirst(9 + length) }
    return Frame(
      kind: head[3], flags: head[4], stream: stream, payload: bytes.dropFirst(9).prefix(length))
  }

  /// Reads a frame.
  ///
  /// - Returns: whether the frame ends the stream.
  private mutating func frame() throws(ReferenceEnding) -> Bool {
    var frame = try next()
    if let open = block {
      guard frame.kind == 9, frame.stream == 1 else { throw .broken("a field block is interrupted") }
      continuations += 1
      return try self.block(open.bytes + frame.payload, open.ends, isLast: frame.has(0x4))
    }
    switch frame.kind {
    case 0:
      guard frame.stream == 1 else { throw .broken("DATA of another stream") }
      try frame.unpad()
      try message.take(data: frame.payload)
      return frame.has(0x1)
    case 1:
      guard frame.stream == 1 else { throw .broken("HEADERS of another stream") }
      try frame.unpad()
      if frame.has(0x20) {
        guard frame.payload.count >= 5 else { throw .broken("a priority is cut") }
        if frame.number(at: 0) & 0x7fff_ffff == 1 { control.isStrict = false }
        frame.payload = frame.payload.dropFirst(5)
      }
      return try block(Array(frame.payload), frame.has(0x1), isLast: frame.has(0x4))
    case 9: throw .broken("CONTINUATION of nothing")
    default:
      try control.take(frame)
      return false
    }
  }

  private mutating func block(
    _ bytes: [UInt8], _ ends: Bool, isLast: Bool
  ) throws(ReferenceEnding) -> Bool {
    guard isLast else {
      block = (bytes, ends)
      return false
    }
    block = nil
    guard let fields = blocks.fields(bytes) else { throw .broken("a field block cannot be decoded") }
    try message.take(fields: fields, ends: ends)
    return ends
  }
}
