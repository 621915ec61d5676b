package import NetOptCore

extension SigningRequest {
  /// Reads an HTTP/1.1 request from its bytes on the wire (RFC 9112). The bytes may also come from a file, so
  /// a line may end in LF alone.
  ///
  /// - Parameters:
  ///   - message: the whole request. If the head has neither Content-Length nor Transfer-Encoding, all bytes
  ///     after the head are the body.
  ///   - scheme: the URL scheme of the request. It counts only when the target in the request line is a path,
  ///     because a URL has its own scheme.
  /// - Throws: `NetOptError.Code.invalidRequest`. The message names the rule that the request breaks.
  package init(message: [UInt8], scheme: Origin.Scheme = .https) throws(NetOptError) {
    do throws(SigningFault) {
      try self.init(http: message, scheme: scheme)
    } catch {
      throw NetOptError(.invalidRequest, phase: .sign, error.detail)
    }
  }

  /// Does the same as `init(message:scheme:)`, but throws a `SigningFault` with the reason `malformedRequest`
  /// instead of a `NetOptError`.
  package init(http message: [UInt8], scheme: Origin.Scheme) throws(SigningFault) {
    var reader = HTTPMessageReader(message)
    self = try reader.request(scheme)
    try check()
  }

  /// Replaces each line fold in a field value by one space. A line fold is a line end and the white space
  /// around it, where the value continues on the next line (RFC 9112, section 5.2).
  package static func unfolded(_ value: String) -> String {
    guard value.utf8.contains(0x0a) else { return value }
    var out: [UInt8] = []
    var bytes = value.utf8[...]
    while let byte = bytes.popFirst() {
      let isEnd = byte == 0x0a || (byte == 0x0d && bytes.first == 0x0a)
      let rest = byte == 0x0d ? bytes.dropFirst() : bytes
      guard isEnd, let next = rest.first, ByteClass.isSpaceOrTab(next) else {
        out.append(byte)
        continue
      }
      while let last = out.last, ByteClass.isSpaceOrTab(last) { out.removeLast() }
      bytes = rest.drop { ByteClass.isSpaceOrTab($0) }
      out.append(0x20)
    }
    return String(decoding: out, as: UTF8.self)
  }
}

/// Reads an HTTP/1.1 request from its first byte to its last.
private struct HTTPMessageReader {
  /// The part of a message that lines belong to, in words for error messages.
  private enum Part: String {
    case head = "the head"
    case chunkedBody = "the chunked body"
  }

  /// The bytes that have not been read yet.
  private var rest: ArraySlice<UInt8>
  /// The part that is being read.
  private var part = Part.head

  init(_ message: [UInt8]) { rest = message[...] }

  private static func fault(_ detail: String) -> SigningFault { SigningFault(.malformedRequest, detail) }

  /// Whether a word is an HTTP version: `HTTP/1.1` (RFC 9112, section 2.3), or a version without a minor
  /// number such as `HTTP/2`, as libraries print it.
  private static func isVersion(_ word: String) -> Bool {
    guard word.hasPrefix("HTTP/") else { return false }
    let number = word.utf8.dropFirst(5)
    return [1, 3].contains(number.count)
      && number.enumerated().allSatisfy {
        $0.offset == 1 ? $0.element == 0x2e : ByteClass.isDigit($0.element)
      }
  }

  /// Reads the request line, the header fields and the body.
  mutating func request(_ scheme: Origin.Scheme) throws(SigningFault) -> SigningRequest {
    guard let first = try line() else { throw Self.fault("the message has no request line") }
    let bytes = first.utf8
    guard let start = bytes.firstIndex(of: 0x20), let end = bytes.lastIndex(of: 0x20), start < end,
      Self.isVersion(String(first[bytes.index(after: end)...]))
    else { throw Self.fault("the first line is not METHOD TARGET HTTP/1.1") }
    // The target is all text between the first and the last space of the line. It may contain spaces, and
    // stays as it is.
    let method = String(first[..<start])
    let target = String(first[bytes.index(after: start)..<end])
    let headers = try fields()
    let body = try body(headers)
    if target.hasPrefix("/") {
      let hosts = headers.values(of: "Host")
      guard hosts.count == 1 else {
        throw Self.fault(
          hosts.isEmpty ? "the message has no Host field" : "the message has several Host fields")
      }
      var request = SigningRequest(
        method: method, scheme: scheme, authority: hosts[0], path: "/", headers: headers, body: body)
      request.set(target: target)
      return request
    }
    // The authority of an absolute target overrides the Host field: RFC 9112, section 3.2.2.
    var others = headers
    others["Host"] = nil
    var request = try SigningRequest(method, rawURL: target, headers: others, body: body)
    request.headers = headers
    if headers.contains(name: "Host") { request.headers["Host"] = request.authority }
    return request
  }

  /// Reads one line and returns it without its line end. Returns `nil` for an empty line. An empty line ends
  /// the head and the trailers. The line end after the data of a chunk also reads as an empty line.
  private mutating func line() throws(SigningFault) -> String? {
    guard let end = rest.firstIndex(of: 0x0a) else {
      throw Self.fault("the message is cut off before the empty line that ends \(part.rawValue)")
    }
    var line = rest[..<end]
    rest = rest[(end + 1)...]
    if line.last == 0x0d { line.removeLast() }
    if line.isEmpty { return nil }
    guard !line.contains(where: { $0 == 0 || $0 == 0x0d }) else {
      throw Self.fault("\(part.rawValue) has a NUL or a CR within a line")
    }
    guard let text = String(validating: line, as: UTF8.self) else {
      throw Self.fault("a line of \(part.rawValue) is not UTF-8")
    }
    guard !SlowText.hasLongRun(text) else {
      throw Self.fault("a line of \(part.rawValue) is not usable: \(SlowText.violation)")
    }
    return text
  }

  /// Reads the header fields and the empty line after them. When a value continues on further lines, joins
  /// its lines with one space.
  private mutating func fields() throws(SigningFault) -> HeaderFields {
    var fields = HeaderFields()
    // The last field stays outside `fields` until all its lines are read: otherwise each fold would copy the
    // value.
    var last: HeaderField?
    while let line = try line() {
      if let first = line.utf8.first, ByteClass.isSpaceOrTab(first) {
        guard last != nil else { throw Self.fault("the first field begins with a space") }
        let folded = Substring(ByteClass.trimmed(line.utf8))
        if last?.value.isEmpty == false { last?.value += " " }
        last?.value += folded
        continue
      }
      if let last { fields.append(last) }
      guard let colon = line.utf8.firstIndex(of: 0x3a) else {
        throw Self.fault("a line of the head has no colon")
      }
      let name = String(line[..<colon])
      guard HeaderFields.isToken(name) else {
        throw Self.fault("a line of the head has no field name before its colon")
      }
      let value = ByteClass.trimmed(line.utf8[line.utf8.index(after: colon)...])
      last = HeaderField(name, String(Substring(value)))
    }
    if let last { fields.append(last) }
    return fields
  }

  /// Reads the body: its chunks, or as many bytes as Content-Length says. Throws if further bytes follow.
  /// Without Transfer-Encoding and Content-Length, all remaining bytes are the body.
  private mutating func body(_ headers: HeaderFields) throws(SigningFault) -> [UInt8] {
    let codings = headers.values(of: "Transfer-Encoding")
    let lengths = Set(headers.values(of: "Content-Length"))
    if !codings.isEmpty {
      guard codings.count == 1, codings[0].loweredASCII == "chunked", lengths.isEmpty else {
        throw Self.fault("the message's Transfer-Encoding is not just chunked")
      }
      return try chunks()
    }
    if lengths.isEmpty { return Array(rest) }
    guard lengths.count == 1, let text = lengths.first, text.utf8.allSatisfy(ByteClass.isDigit),
      let length = Int(text)
    else { throw Self.fault("Content-Length is not a number, or occurs more than once") }
    guard rest.count >= length else {
      throw Self.fault(
        "the message is cut off: Content-Length is \(length) bytes, but the body has \(rest.count)")
    }
    guard rest.count == length else {
      throw Self.fault(
        "\(rest.count - length) bytes follow the \(length) of the body; correct Content-Length")
    }
    return Array(rest)
  }

  /// Reads a chunked body (RFC 9112, section 7.1) and returns it without the framing.
  private mutating func chunks() throws(SigningFault) -> [UInt8] {
    part = .chunkedBody
    var body: [UInt8] = []
    while true {
      guard let size = try line() else { throw Self.fault("a chunk has no length") }
      let digits = size.utf8.prefix { $0 != 0x3b && !ByteClass.isSpaceOrTab($0) }
      guard (1...15).contains(digits.count), digits.allSatisfy({ Hex.digit($0) != nil }) else {
        throw Self.fault("the length of a chunk is not a hexadecimal number")
      }
      let length = digits.reduce(0) { $0 << 4 | Int(Hex.digit($1) ?? 0) }
      if length == 0 { break }
      guard rest.count >= length else { throw Self.fault("the message is cut off within a chunk") }
      body += rest.prefix(length)
      rest = rest.dropFirst(length)
      guard try line() == nil else { throw Self.fault("a chunk is longer than its length") }
    }
    // Trailer fields are not signed.
    while try line() != nil {}
    guard rest.isEmpty else {
      throw Self.fault("\(rest.count) bytes follow the last chunk and its trailers; a message ends there")
    }
    return body
  }
}
