/// Generates HTTP/2 frames.
extension AnswerMaker {
  typealias Field = (name: String, value: String)

  /// Valid fields.
  private static let fields: [Field] = [
    ("cache-control", "max-age=60"), ("set-cookie", "a=b"), ("location", "/elsewhere"), ("x-empty", ""),
    ("x-8-bit", "\u{e4}"), ("content-encoding", "gzip"), ("etag", "\"a\""),
  ]
  /// Fields and pseudo-fields that must not occur among the fields of an HTTP/2 response.
  private static let oddFields: [Field] = [
    ("X-Upper", "one"), ("x odd", "one"), ("", "one"), ("x-odd", " one "), ("x-nul", "a\0b"),
    ("x-lf", "a\nb"),
    ("x-forged", "a\r\nx-more: b"), ("connection", "close"), ("transfer-encoding", "chunked"),
    ("te", "trailers"),
    ("upgrade", "h2c"), (":path", "/"), (":status", "404"), (":odd", "one"), ("x:odd", "one"),
    ("\u{e4}", "one"),
  ]
  /// Values of `:status` other than that of a usual response. Some are valid.
  private static let oddStatuses = [
    "404", "204", "304", "301", "503", "099", "20", "2000", "", "200 OK", "+20", "101", "199", "999",
  ]

  /// Generates the frames that a server sends after its SETTINGS when it has received the request on stream
  /// 1: interim responses, the head, DATA and trailers, with other frames between them.
  mutating func frames() -> [UInt8] {
    var bytes: [UInt8] = []
    others(to: &bytes)
    while isOnce(in: 6) {
      let status = pick(["100", "103", "103", "101"])
      head([(":status", status)] + more(), ends: isOnce(in: 20), to: &bytes)
      others(to: &bytes)
    }
    let body = body()
    var lines = more()
    if isOnce(in: 3) {
      lines.append(("content-length", isOnce(in: 5) ? oddLength(body.count) : "\(body.count)"))
    }
    let status: [Field] = isOnce(in: 40) ? [] : [(":status", isOnce(in: 6) ? pick(Self.oddStatuses) : "200")]
    let hasTrailers = isOnce(in: 8)
    let endsWithHead = body.isEmpty && !hasTrailers && isOnce(in: 2)
    head(status + lines, ends: endsWithHead, to: &bytes)
    others(to: &bytes)
    if endsWithHead { return bytes }
    var rest = body[...]
    repeat {
      let count = isOnce(in: 2) ? rest.count : number(below: rest.count + 1)
      let isLast = count == rest.count && !hasTrailers
      data(rest.prefix(count), ends: isLast && !isOnce(in: 30), to: &bytes)
      rest = rest.dropFirst(count)
      others(to: &bytes, times: isLast ? 30 : 5)
    } while !rest.isEmpty
    if hasTrailers { head(more(), ends: !isOnce(in: 8), to: &bytes) }
    return bytes
  }

  /// Returns some random fields. One call in ten adds a field of `oddFields`.
  private mutating func more() -> [Field] {
    var fields: [Field] = []
    while isOnce(in: 2) { fields.append(pick(Self.fields)) }
    if isOnce(in: 10) { fields.append(pick(Self.oddFields)) }
    return fields
  }

  /// Returns a wrong or unusual value of `content-length` for a body of `count` bytes.
  private mutating func oddLength(_ count: Int) -> String {
    pick([
      "\(count + 1)", "\(max(count - 1, 0))", "", "-\(count)", "+\(count)", "0\(count)", "\(count), \(count)",
      "1\(String(repeating: "0", count: 30))", "\(count)a",
    ])
  }

  // MARK: Frames

  /// Appends a frame. A few frames get a length, stream or flags that differ from the parameters.
  ///
  /// - Parameter kind: the frame type (RFC 9113, section 6).
  private mutating func frame(
    _ kind: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8], to bytes: inout [UInt8]
  ) {
    let length = isOnce(in: 150) ? pick([payload.count + 1, 16_385, 0xff_ffff, 0]) : payload.count
    let stream = isOnce(in: 100) ? pick([0, 1, 2, 3, 0x8000_0001, 0x7fff_ffff]) : stream
    let flags = isOnce(in: 60) ? UInt8(truncatingIfNeeded: random.next()) : flags
    bytes += [UInt8(truncatingIfNeeded: length >> 16), UInt8(truncatingIfNeeded: length >> 8)]
    bytes += [UInt8(truncatingIfNeeded: length), kind, flags] + Self.number(stream) + payload
  }

  /// Encodes a number in four bytes, the most significant first.
  private static func number(_ value: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
  }

  /// Adds padding to one payload in eight, and sets the flag PADDED. The stated length of the padding may be
  /// wrong.
  private mutating func padded(_ payload: [UInt8], _ flags: inout UInt8) -> [UInt8] {
    guard isOnce(in: 8) else { return payload }
    flags |= 0x8
    let count = number(below: 20)
    let said = isOnce(in: 10) ? number(below: 256) : count
    return [UInt8(said)] + payload + [UInt8](repeating: 0, count: count)
  }

  /// Appends a DATA frame on stream 1.
  ///
  /// - Parameter ends: whether the frame has the flag END_STREAM.
  private mutating func data(_ part: ArraySlice<UInt8>, ends: Bool, to bytes: inout [UInt8]) {
    var flags: UInt8 = ends ? 0x1 : 0
    let payload = padded(Array(part), &flags)
    frame(0, flags, 1, payload, to: &bytes)
  }

  /// Appends the fields in a HEADERS frame on stream 1, or in one of six cases in a HEADERS and a
  /// CONTINUATION frame.
  ///
  /// - Parameter ends: whether HEADERS has the flag END_STREAM.
  private mutating func head(_ fields: [Field], ends: Bool, to bytes: inout [UInt8]) {
    let block = block(fields)
    var flags: UInt8 = ends ? 0x1 : 0
    let cut = isOnce(in: 6) ? number(below: block.count + 1) : block.count
    var payload = Array(block[..<cut])
    if isOnce(in: 10) {
      flags |= 0x20
      payload = Self.number(isOnce(in: 4) ? 1 : 0) + [0x10] + payload
    }
    payload = padded(payload, &flags)
    if cut == block.count {
      frame(1, flags | 0x4, 1, payload, to: &bytes)
    } else {
      frame(1, flags, 1, payload, to: &bytes)
      if isOnce(in: 20) { others(to: &bytes, times: 2) }
      frame(9, 0x4, 1, Array(block[cut...]), to: &bytes)
    }
  }

  /// Encodes a field block in the forms of RFC 7541, section 6.
  private mutating func block(_ fields: [Field]) -> [UInt8] {
    var block: [UInt8] = []
    if isOnce(in: 15) { block.append(pick([0x20, 0x3f, 0x21])) }
    for field in fields {
      switch number(below: 8) {
      case 0 where field == (":status", "200"): block.append(0x88)
      case 1: block += [0x40] + text(field.name) + text(field.value)
      case 2 where field.name == ":status": block += [0x08] + text(field.value)
      case 3: block += [0x10] + text(field.name) + text(field.value)
      default: block += [0x00] + text(field.name) + text(field.value)
      }
      // An index of the static or the dynamic table, or an index that does not exist.
      if isOnce(in: 25) { block.append(pick([0xbe, 0xbf, 0x80, 0x90, 0xff, 0xa0])) }
    }
    return block
  }

  /// Encodes a string of at most 126 bytes (RFC 7541, section 5.2). In one of 15 cases it is "no-cache"
  /// instead of the text.
  private mutating func text(_ text: String) -> [UInt8] {
    // The bytes of "no-cache" with Huffman coding, from RFC 7541, section C.4.2.
    if isOnce(in: 15) { return [0x86, 0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf] }
    let bytes = Array(text.utf8)
    return bytes.count < 127 ? [UInt8(bytes.count)] + bytes : []
  }

  /// Appends a random number of frames that are normally not part of the response, such as PING and SETTINGS.
  /// Some belong to streams that the client did not open, and some are invalid.
  ///
  /// - Parameter times: each next frame is appended with a probability of 1/`times`.
  private mutating func others(to bytes: inout [UInt8], times: Int = 5) {
    while isOnce(in: times) {
      switch number(below: 11) {
      case 0: frame(6, 0, 0, Array("12345678".utf8), to: &bytes)
      case 1: frame(6, 1, 0, Array("12345678".utf8), to: &bytes)
      case 2, 3:
        var settings: [UInt8] = []
        while !isOnce(in: 3) {
          settings += [0, pick([1, 2, 3, 4, 5, 6, 0x99])]
          settings += Self.number(
            pick([0, 0, 1, 100, 16_384, 65_535, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]))
        }
        frame(4, 0, 0, settings, to: &bytes)
      case 4: frame(4, 1, 0, [], to: &bytes)
      case 5, 6:
        let increment = pick([1, 1, 100, 65_535, 0x7fff_0000, 0x7fff_ffff, 0, 0x8000_0001] as [UInt32])
        frame(8, 0, pick([0, 1, 0, 1, 3]), Self.number(increment), to: &bytes)
      case 7: frame(2, 0, pick([1, 3, 5, 2]), Self.number(pick([0, 1, 3])) + [0x10], to: &bytes)
      case 8: frame(pick([0xbb, 0x20, 0x0a, 0x0c, 0x10]), 0, pick([0, 1, 3]), Array("odd".utf8), to: &bytes)
      case 9:
        let last = pick([0x7fff_ffff, 1, 1, 0, 2] as [UInt32])
        frame(7, 0, 0, Self.number(last) + Self.number(pick([0, 0, 1, 11])), to: &bytes)
      default:
        switch number(below: 3) {
        case 0: frame(3, 0, pick([1, 1, 3, 2]), Self.number(pick([0, 8, 7, 5])), to: &bytes)
        case 1: frame(5, 0x4, 1, Self.number(2) + block([(":path", "/pushed")]), to: &bytes)
        default: data([1, 2, 3], ends: isOnce(in: 2), to: &bytes)
        }
      }
    }
  }
}
