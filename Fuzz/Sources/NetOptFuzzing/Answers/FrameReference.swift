/// Reads the response to the first request of an HTTP/2 connection by RFC 9113: a simple and slow
/// implementation to compare the client with. A malformed message, a stream error or a connection error makes
/// the response `broken`. Where implementations differ, the response is not strict.
struct FrameReference {
  /// A frame (section 4.1).
  struct Frame {
    /// The frame type (section 6).
    let kind: UInt8
    let flags: UInt8
    /// The stream, without the reserved bit.
    let stream: UInt32
    var payload: ArraySlice<UInt8>

    /// Whether a flag is set.
    func has(_ flag: UInt8) -> Bool { flags & flag != 0 }

    /// Reads a number of four bytes in the payload, the most significant first.
    func number(at offset: Int) -> UInt32 {
      payload.dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Removes the padding from a payload whose frame has the flag PADDED (section 6.1).
    mutating func unpad() throws(ReferenceEnding) {
      guard has(0x8) else { return }
      guard let count = payload.popFirst(), payload.count >= Int(count) else {
        throw .broken("the padding is longer than the frame")
      }
      payload = payload.dropLast(Int(count))
    }
  }

  /// The bytes that have not been read.
  private var bytes: ArraySlice<UInt8>
  /// The decoder of the field blocks, with the dynamic table.
  private var blocks = FieldBlockReader()
  /// What the HEADERS and DATA frames of stream 1 have brought.
  private var message = MessageReference()
  /// The state that all other frames change.
  private var control = ControlReference()
  /// The number of CONTINUATION frames so far.
  private var continuations = 0
  /// The bytes so far of a field block that CONTINUATION continues, and whether its HEADERS had the flag
  /// END_STREAM; `nil` between field blocks.
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
      // The stream did not end, but all bytes that `Content-Length` announced have arrived. No byte of the
      // body is missing, so a client may deliver it.
      if let answer = reference.message.answerByLength { return .whole(answer) }
      return error.answer
    }
  }

  private init(bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  /// Reads the next frame without interpreting it.
  private mutating func next() throws(ReferenceEnding) -> Frame {
    guard bytes.count >= 9 else { throw .broken("the connection ends before the answer does") }
    let head = Array(bytes.prefix(9))
    let length = head[..<3].reduce(0) { $0 << 8 | Int($1) }
    // Section 4.2: a frame has at most 16,384 bytes, unless the client allows more, and netopt's client does
    // not.
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

  /// Reads the next frame and applies it to the state.
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

  /// Handles a field block, or the part of one that has arrived.
  ///
  /// - Parameters:
  ///   - bytes: all bytes of the block so far.
  ///   - ends: whether the block's HEADERS had the flag END_STREAM.
  ///   - isLast: whether the block is complete (the flag END_HEADERS).
  /// - Returns: whether the stream has ended.
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
