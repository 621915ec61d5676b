/// The head of a response, kept as the bytes that came; fields are parsed when they are asked for.
@usableFromInline
package struct ResponseHead: Sendable, Hashable {
  /// The status code.
  package let status: Int
  /// The version of HTTP.
  package let version: HTTPVersion
  /// The field lines as they came, each with its CRLF or LF, without the status line.
  package let lines: [UInt8]

  /// Makes a head from its field lines.
  package init(status: Int, version: HTTPVersion, lines: [UInt8]) {
    self.status = status
    self.version = version
    self.lines = lines
  }

  /// Makes a head from fields. A line end or NUL in one becomes a space, as RFC 9110, section 5.5 asks of recipients.
  package init(status: Int, version: HTTPVersion = .http1_1, fields: HeaderFields = [:]) {
    var lines: [UInt8] = []
    lines.reserveCapacity(fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 })
    for field in fields {
      Self.append(field.name, to: &lines)
      lines.append(0x3a)
      lines.append(0x20)
      Self.append(field.value, to: &lines)
      lines.append(0x0d)
      lines.append(0x0a)
    }
    self.init(status: status, version: version, lines: lines)
  }

  private static func append(_ text: String, to lines: inout [UInt8]) {
    let start = lines.count
    lines.append(contentsOf: text.utf8)
    for index in start..<lines.count where lines[index] == 0 || lines[index] == 0x0a || lines[index] == 0x0d {
      lines[index] = 0x20
    }
  }

  /// All fields, in the order in which they came. Bytes that are no UTF-8 are replaced.
  package var fields: HeaderFields {
    var fields = HeaderFields()
    forEachLine { name, value in
      fields.append(
        HeaderField(String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
      return true
    }
    return fields
  }

  /// The first value of a field, found without parsing the others.
  package func first(_ name: String) -> String? {
    firstBytes(name).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The first field of this name whose value is a reference to a resource, such as `Location`. Bytes beyond ASCII are percent-encoded as they
  /// came: two references in another encoding than UTF-8 would be one text. `nil` also for more than `HTTPURL.longestReference` bytes.
  package func reference(_ name: String) -> String? {
    firstBytes(name).flatMap { $0.count > HTTPURL.longestReference ? nil : HTTPURL.encodedBeyondASCII($0) }
  }

  private func firstBytes(_ name: String) -> ArraySlice<UInt8>? {
    var found: ArraySlice<UInt8>?
    forEachLine { candidate, value in
      let matches =
        candidate.count == name.utf8.count
        && zip(candidate, name.utf8).allSatisfy { $0 == $1 || (isLetter($0) && $0 | 0x20 == $1 | 0x20) }
      if matches { found = value }
      return !matches
    }
    return found
  }

  private func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

  /// Calls `body` with name and value of each line until it returns false. Obsolete folds (RFC 9112, section 5.2)
  /// never get here: libcurl unfolds them or refuses.
  private func forEachLine(_ body: (ArraySlice<UInt8>, ArraySlice<UInt8>) -> Bool) {
    var rest = lines[...]
    while let end = rest.firstIndex(of: 0x0a) {
      let line = rest[..<end]
      rest = rest[(end + 1)...]
      guard let colon = line.firstIndex(of: 0x3a), colon > line.startIndex else { continue }
      let value = line[(colon + 1)...]
      let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0d }
      let first = value.firstIndex { !isSpace($0) } ?? value.endIndex
      let last = value.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? first
      if !body(line[..<colon], value[first..<last]) { return }
    }
  }
}

/// The version of HTTP that an exchange used.
public enum HTTPVersion: String, Hashable, Sendable, CustomStringConvertible {
  /// HTTP/1.0 (RFC 1945).
  case http1_0 = "1.0"
  /// HTTP/1.1 (RFC 9112).
  case http1_1 = "1.1"
  /// HTTP/2 (RFC 9113).
  case http2 = "2"
  /// HTTP/3 (RFC 9114), for a libcurl that speaks it.
  case http3 = "3"

  /// `1.1`, `2`.
  public var description: String { rawValue }
}
