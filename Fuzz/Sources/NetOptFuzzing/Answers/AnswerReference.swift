import NetOptCore

/// Reads an HTTP/1.1 response by RFC 9112: a simple and slow implementation to compare the client with. Where
/// the RFC lets clients differ, it clears `isStrict` or ends with `open`.
struct AnswerReference {
  /// All bytes that the server sends before it ends the connection.
  let bytes: [UInt8]
  /// The index of the next byte to read.
  var index = 0
  /// Whether a client must accept what was read so far. False after a deviation for which it may reject the
  /// response.
  var isStrict = true

  /// Reads a complete response.
  static func read(_ bytes: [UInt8]) -> ReferenceAnswer {
    var reference = AnswerReference(bytes: bytes)
    do throws(ReferenceEnding) {
      let (status, fields, body) = try reference.answer()
      let named = fields.map { (name: $0.name, value: $0.value) }
      return .whole(WholeAnswer(status: status, fields: named, body: body, isStrict: reference.isStrict))
    } catch {
      return error.answer
    }
  }

  /// Reads interim responses, which it skips, and the final response.
  private mutating func answer() throws(ReferenceEnding) -> (Int, [AnswerField], [UInt8]) {
    let headLimit = 64 * 1024
    while true {
      let (status, minor) = try statusLine()
      let fields = try fields()
      if status == 101 { throw .broken("another protocol, which was not asked for") }
      if status < 200 { continue }
      // A client may limit the size of heads, and need not know statuses above 599.
      if index > headLimit || status >= 600 { isStrict = false }
      if status == 204 || status == 304 {
        // These responses have no body, so a client may reject bytes that follow. Fields may describe a body
        // that was not sent, and clients treat such fields differently.
        if index < bytes.count || !fields.isEmpty { isStrict = false }
        return (status, fields, [])
      }
      return (status, fields, try body(AnswerFraming(fields, minor: minor)))
    }
  }

  /// Reads the body whose end `framing` determines.
  private mutating func body(_ framing: AnswerFraming) throws(ReferenceEnding) -> [UInt8] {
    switch framing {
    case .broken(let why): throw .broken(why)
    case .open: throw .open
    case .end: return Array(bytes[index...])
    case .length(let count, let isStrict):
      if !isStrict || index + count < bytes.count { self.isStrict = false }
      guard count <= bytes.count - index else { throw .broken("the body is shorter than its length") }
      return Array(bytes[index..<index + count])
    case .chunked(let isStrict):
      if !isStrict { self.isStrict = false }
      return try chunks()
    }
  }

  // MARK: Lines

  /// Reads the next line and returns it without its end. A line should end with CR LF, but LF alone is
  /// enough.
  mutating func line() throws(ReferenceEnding) -> ArraySlice<UInt8> {
    guard let end = bytes[index...].firstIndex(of: 0x0a) else {
      throw .broken("the connection ends in a line")
    }
    var line = bytes[index..<end]
    index = end + 1
    if line.last == 0x0d { line.removeLast() } else { isStrict = false }
    return line
  }

  /// Reads the status line (section 4). Several spaces or tabs may separate its words. The text after the
  /// status is ignored.
  ///
  /// - Returns: the status, and the minor version of HTTP as a number.
  private mutating func statusLine() throws(ReferenceEnding) -> (status: Int, minor: UInt8) {
    let line = try line()
    if line.isEmpty || line.contains(where: { $0 == 0 || $0 == 0x0d }) { throw .open }
    let words = line.split(maxSplits: 2, omittingEmptySubsequences: true) { $0 == 0x20 || $0 == 0x09 }
    guard words.count >= 2, let version = words.first, line.first == 0x48 else {
      throw .broken("there is no status line")
    }
    guard version.count == 8, version.starts(with: "HTTP/".utf8), version.last.map(Self.isDigit) == true,
      version.dropFirst(5).first.map(Self.isDigit) == true, version.dropFirst(6).first == 0x2e
    else { throw .broken("there is no version") }
    guard version.dropFirst(5).first == 0x31 else { throw .broken("the version is another one") }
    let minor = version.last ?? 0
    guard words[1].count >= 3, words[1].prefix(3).allSatisfy(Self.isDigit) else {
      throw .broken("there is no status")
    }
    if words[1].count > 3 {
      if words[1].dropFirst(3).first.map(Self.isDigit) == true { throw .broken("the status is too long") }
      throw .open
    }
    let status = words[1].reduce(0) { $0 * 10 + Int($1 - 0x30) }
    guard status >= 100 else { throw .broken("the status is none") }
    let start = Array(version) + [0x20] + Array(words[1]) + [0x20]
    if minor > 0x31 || !line.starts(with: start) || line.contains(where: Self.isControl) { isStrict = false }
    return (status, minor - 0x30)
  }

  /// Reads the field lines up to the empty line (section 5). Ignores a line that is not a valid field. If
  /// such a line could be a field that determines the end of the body, a client may reject the response.
  private mutating func fields() throws(ReferenceEnding) -> [AnswerField] {
    var fields: [AnswerField] = []
    while true {
      let line = try line()
      if line.isEmpty { return fields }
      if line.contains(where: { $0 == 0 || $0 == 0x0d }) { throw .open }
      if line.contains(where: Self.isControl) { isStrict = false }
      if line.first == 0x20 || line.first == 0x09 {
        isStrict = false
        guard let last = fields.indices.last else { throw .open }
        // A client may unfold a framing field, or reject the message.
        if fields[last].isFraming { throw .open }
        continue
      }
      guard let colon = line.firstIndex(of: 0x3a), colon > line.startIndex else {
        isStrict = false
        continue
      }
      let field = AnswerField(line[..<colon], line[(colon + 1)...])
      if !field.isToken {
        isStrict = false
        if field.isFraming { throw .open }
        continue
      }
      fields.append(field)
    }
  }

  /// Whether a byte is an ASCII digit.
  static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  /// Whether a byte is a control character other than the tab.
  static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != 0x09 || byte == 0x7f }
}
