/// Checks the frames other than HEADERS, DATA and CONTINUATION (RFC 9113, section 6), and records how they
/// affect the response.
struct ControlReference {
  /// Whether a client must accept the frames so far. False after a frame that implementations treat
  /// differently.
  var isStrict = true
  /// The number of frames so far.
  private var count = 0
  /// How many bytes the client may send on the connection and on stream 1 (section 5.2). SETTINGS change only
  /// the window of the stream. The reference does not subtract what the client sends.
  private var connectionWindow: Int64 = 65_535
  private var streamWindow: Int64 = 65_535
  /// The last value of SETTINGS_INITIAL_WINDOW_SIZE (section 6.9.2).
  private var initialWindow: Int64 = 65_535

  /// The largest allowed window (section 6.9.1).
  private static let mostWindow: Int64 = 0x7fff_ffff

  /// Checks the next frame.
  mutating func take(_ frame: FrameReference.Frame) throws(ReferenceEnding) {
    count += 1
    // A client may take many such frames for an attack and end the connection (section 10.5).
    if count > 50 { isStrict = false }
    switch frame.kind {
    case 2: try priority(frame)
    case 3: throw .broken("RST_STREAM before the answer's end, or a false one")
    case 4: try settings(frame)
    case 5: throw .broken("PUSH_PROMISE, which the client forbids")
    case 6:
      guard frame.stream == 0, frame.payload.count == 8 else { throw .broken("a false PING") }
      if frame.has(0x1) { isStrict = false }
    case 7: try goAway(frame)
    case 8: try windowUpdate(frame)
    // A client may know and check these types: ALTSVC (RFC 7838), ORIGIN (RFC 8336) and PRIORITY_UPDATE (RFC
    // 9218).
    case 0xa, 0xc, 0x10: isStrict = false
    // Section 5.5: a client ignores frames of unknown types.
    default: break
    }
  }

  private mutating func priority(_ frame: FrameReference.Frame) throws(ReferenceEnding) {
    guard frame.stream != 0 else { throw .broken("PRIORITY of no stream") }
    if frame.payload.count != 5 {
      if frame.stream == 1 { throw .broken("a false PRIORITY") }
      isStrict = false
    } else if frame.number(at: 0) & 0x7fff_ffff == frame.stream {
      isStrict = false
    }
  }

  private mutating func settings(_ frame: FrameReference.Frame) throws(ReferenceEnding) {
    guard frame.stream == 0, frame.payload.count.isMultiple(of: 6) else { throw .broken("false SETTINGS") }
    if frame.has(0x1) {
      guard frame.payload.isEmpty else { throw .broken("an acknowledgement with settings") }
      isStrict = false
      return
    }
    if frame.payload.count > 6 * 16 { isStrict = false }
    let settings = stride(from: 0, to: frame.payload.count, by: 6).map {
      (identifier: frame.number(at: $0) >> 16, value: Int64(frame.number(at: $0 + 2)))
    }
    for (index, (identifier, value)) in settings.enumerated() {
      if settings[(index + 1)...].contains(where: { $0.identifier == identifier }) {
        // The frame has the setting again. Section 6.5.3 says that all values are processed in order. Some
        // implementations use only the last value of a frame, and so does this reference.
        isStrict = false
        continue
      }
      try setting(identifier, value)
    }
  }

  private mutating func setting(_ identifier: UInt32, _ value: Int64) throws(ReferenceEnding) {
    switch identifier {
    // Section 6.5.2: a server must not enable push.
    case 2: if value != 0 { throw .broken("SETTINGS enable push") }
    case 4:
      guard value <= Self.mostWindow else { throw .broken("the initial window is too large") }
      streamWindow += value - initialWindow
      initialWindow = value
      if streamWindow > Self.mostWindow { throw .broken("the window overflows") }
    case 5:
      guard (16_384...16_777_215).contains(value) else { throw .broken("the frame size is out of bounds") }
    // SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441) and SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218) allow only
    // some values, which a client may check.
    case 8, 9: isStrict = false
    default: break
    }
  }

  private mutating func goAway(_ frame: FrameReference.Frame) throws(ReferenceEnding) {
    guard frame.stream == 0, frame.payload.count >= 8 else { throw .broken("a false GOAWAY") }
    let last = frame.number(at: 0) & 0x7fff_ffff
    guard last >= 1 else { throw .broken("GOAWAY: the request was not processed") }
    // A client may end the request because of an error code. It may also reject a last stream that it cannot
    // have opened.
    isStrict = false
  }

  private mutating func windowUpdate(_ frame: FrameReference.Frame) throws(ReferenceEnding) {
    guard frame.stream <= 1, frame.payload.count == 4 else { throw .broken("a false WINDOW_UPDATE") }
    let increment = Int64(frame.number(at: 0) & 0x7fff_ffff)
    guard increment > 0 else { throw .broken("a WINDOW_UPDATE of 0") }
    if frame.stream == 0 { connectionWindow += increment } else { streamWindow += increment }
    if max(connectionWindow, streamWindow) > Self.mostWindow { throw .broken("the window overflows") }
  }
}
