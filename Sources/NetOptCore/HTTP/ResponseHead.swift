/// The status, HTTP version and fields of a response. Stores the fields as received bytes, and parses them at
/// each access.
@usableFromInline
package struct ResponseHead: Sendable, Hashable {
  /// The status code.
  package let status: Int
  /// The version of HTTP.
  package let version: HTTPVersion
  /// The field lines as they were received, each with its CRLF or LF. Does not contain the status line.
  package let lines: [UInt8]

  /// Creates a head from its field lines.
  package init(status: Int, version: HTTPVersion, lines: [UInt8]) {
    self.status = status
    self.version = version
    self.lines = lines
  }

  /// Creates a head from fields. Replaces line ends and NULs in names and values by spaces, as RFC 9110,
  /// section 5.5 asks of recipients.
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

  /// Appends a text. Replaces line ends and NULs in it by spaces.
  private static func append(_ text: String, to lines: inout [UInt8]) {
    let start = lines.count
    lines.append(contentsOf: text.utf8)
    for index in start..<lines.count where lines[index] == 0 || lines[index] == 0x0a || lines[index] == 0x0d {
      lines[index] = 0x20
    }
  }

  /// All fields in received order. Invalid UTF-8 is replaced.
  package var fields: HeaderFields {
    var fields = HeaderFields()
    forEachLine { name, value in
      fields.append(
        HeaderField(String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
      return true
    }
    return fields
  }

  /// Whether a response with this status has no body (RFC 9110, section 6.4.1): 204 and 304. Neither has a
  /// response to HEAD.
  @inlinable
  package static func hasNoBody(_ status: Int) -> Bool { status == 204 || status == 304 }

  /// Returns the value of the first field with this name, without parsing all fields.
  package func first(_ name: String) -> String? {
    firstBytes(name).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns the value of the first field with this name as a URI reference, for fields such as `Location`.
  /// Percent-encodes the non-ASCII bytes. Decoding the value as UTF-8 instead would replace each invalid byte
  /// by the same character, so that different references could become equal. Returns `nil` if there is no
  /// such field, or if its value is longer than `HTTPURL.longestReference` bytes.
  package func reference(_ name: String) -> String? {
    firstBytes(name).flatMap { $0.count > HTTPURL.longestReference ? nil : HTTPURL.encodedBeyondASCII($0) }
  }

  /// Returns the bytes of the value of the first field with this name. Ignores the case of the name.
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

  /// Calls `body` with the name and value of each field line until `body` returns false. Each field is on one
  /// line: libcurl unfolds or rejects fields on several lines (RFC 9112, section 5.2).
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

/// The version of HTTP of an exchange.
public enum HTTPVersion: String, Hashable, Sendable, CustomStringConvertible {
  /// HTTP/1.0 (RFC 1945).
  case http1_0 = "1.0"
  /// HTTP/1.1 (RFC 9112).
  case http1_1 = "1.1"
  /// HTTP/2 (RFC 9113).
  case http2 = "2"
  /// HTTP/3 (RFC 9114). netopt's own transport refuses responses with this version. A transport of the
  /// program may report it.
  case http3 = "3"

  /// The version number: `1.1`, `2`.
  public var description: String { rawValue }
}
