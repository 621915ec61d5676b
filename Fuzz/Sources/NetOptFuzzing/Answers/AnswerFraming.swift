import NetOptCore

/// A field line of a response head, as the reference implementation reads it. The name may be invalid.
struct AnswerField {
  /// The name in lower case, without white space around it.
  let name: String
  /// The value without white space around it.
  let value: [UInt8]
  /// Whether the name is a valid token (RFC 9110, section 5.6.2) as it was received, with any white space.
  let isToken: Bool

  /// Reads a field from the bytes before its colon and the bytes after its colon.
  init(_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) {
    let trimmed = ByteClass.trimmed(Array(name))
    self.name = String(decoding: trimmed, as: UTF8.self).lowercased()
    self.value = Array(ByteClass.trimmed(Array(value)))
    isToken = HeaderFields.isToken(String(decoding: name, as: UTF8.self))
  }

  /// Whether the field determines the end of the body.
  var isFraming: Bool { name == "content-length" || name == "transfer-encoding" }
}

/// How the end of an HTTP/1.1 body is determined (RFC 9112, section 6.3). `isStrict` is false when a client
/// may reject the response because of its `Content-Length` or `Transfer-Encoding` fields.
enum AnswerFraming {
  /// The body ends when the server ends the connection.
  case end
  /// The body has this number of bytes.
  case length(Int, isStrict: Bool)
  /// The body consists of chunks.
  case chunked(isStrict: Bool)
  /// The fields break the rules, so a client must reject the response. The text names the fault.
  case broken(String)
  /// A client may accept or reject the response.
  case open

  /// The known transfer codings besides `chunked`.
  private static let codings: Set = ["identity", "gzip", "x-gzip", "deflate", "compress", "x-compress"]

  /// - Parameters:
  ///   - fields: all fields of the head.
  ///   - minor: the minor version of HTTP in the status line: 0 for HTTP/1.0.
  init(_ fields: [AnswerField], minor: UInt8) {
    let codings = fields.filter { $0.name == "transfer-encoding" }
    let lengths = fields.filter { $0.name == "content-length" }
    if codings.isEmpty {
      self = lengths.isEmpty ? .end : Self.length(lengths)
    } else {
      // RFC 9112, section 6.1: over HTTP/1.0 a Transfer-Encoding means that the framing is faulty.
      self = minor == 0 ? .open : Self.coded(codings, isStrict: lengths.isEmpty)
    }
  }

  /// Reads the fields `Transfer-Encoding`.
  ///
  /// - Parameter isStrict: whether the head has no `Content-Length` beside them.
  private static func coded(_ fields: [AnswerField], isStrict: Bool) -> AnswerFraming {
    let all = fields.flatMap { $0.value.split(separator: 0x2c, omittingEmptySubsequences: false) }
      .map { String(decoding: ByteClass.trimmed(Array($0)), as: UTF8.self).lowercased() }
    // RFC 9110, section 5.6.1: a sender creates no empty list members, and a recipient ignores them.
    let members = all.filter { !$0.isEmpty }
    if members == ["chunked"] { return .chunked(isStrict: isStrict && all.count == 1) }
    if members.count(where: { $0 == "chunked" }) > 1 { return .broken("chunked twice") }
    if members.contains(where: { !codings.contains($0) && $0 != "chunked" && !$0.contains(";") }) {
      return .broken("a coding that does not exist")
    }
    return .open
  }

  /// Reads the fields `Content-Length`. Equal numbers, in one field or in several, count as one number, but a
  /// client may reject them (RFC 9112, section 6.3).
  private static func length(_ fields: [AnswerField]) -> AnswerFraming {
    let members = fields.flatMap { $0.value.split(separator: 0x2c, omittingEmptySubsequences: false) }
      .map { ByteClass.trimmed(Array($0)) }
    let numbers = members.filter { !$0.isEmpty }
    guard let first = numbers.first, numbers.allSatisfy({ $0.allSatisfy(AnswerReference.isDigit) }) else {
      return .broken("the length is none")
    }
    let digits = numbers.map { Array($0.drop { $0 == 0x30 }) }
    guard digits.allSatisfy({ $0 == digits[0] }) else { return .broken("there are two lengths") }
    guard digits[0].count <= 18, let count = Int(String(decoding: first, as: UTF8.self)) else {
      return .broken("the length is too large")
    }
    return .length(count, isStrict: members.count == 1 && first.count <= 18)
  }
}
