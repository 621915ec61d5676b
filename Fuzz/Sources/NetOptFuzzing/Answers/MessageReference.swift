import NetOptCore

/// Puts a response together from its field blocks and DATA, and checks it (RFC 9113, section 8).
struct MessageReference {
  /// The status of the final response; `nil` before its head.
  private var status: Int?
  /// The fields of the head, without `:status` and without trailers.
  private var fields: [(name: String, value: [UInt8])] = []
  /// The value of `content-length` in the head; `nil` without this field.
  private var length: Int?
  /// The DATA so far.
  private var body: [UInt8] = []
  private var hasTrailers = false
  /// Whether a client must accept what has arrived so far. False after a deviation for which it may reject
  /// the response.
  private var isStrict = true

  /// The connection-specific fields (section 8.2.2).
  private static let connectionSpecific: Set = [
    "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
  ]

  /// Adds the content of a DATA frame.
  mutating func take(data: ArraySlice<UInt8>) throws(ReferenceEnding) {
    guard status != nil else { throw .broken("DATA before the head") }
    if hasTrailers { throw .broken("DATA behind the trailers") }
    if let length, body.count + data.count > length, !isBodiless {
      throw .broken("more DATA than the length says")
    }
    body += data
  }

  /// Handles a decoded field block: the head of an interim response, the head of the final response, or
  /// trailers.
  ///
  /// - Parameter ends: whether the block ends the stream.
  mutating func take(fields block: [FieldBlockReader.Field], ends: Bool) throws(ReferenceEnding) {
    if status != nil {
      guard ends, !hasTrailers else { throw .broken("trailers that do not end the stream") }
      hasTrailers = true
      try regular(block, isTrailer: true)
      return
    }
    guard let first = block.first, first.name == Array(":status".utf8) else { throw .broken("no status") }
    let code = first.value
    guard code.count == 3, code.allSatisfy(AnswerReference.isDigit), code[0] != 0x30 else {
      throw .broken("the status is none")
    }
    let number = code.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    if number == 101 { throw .broken("another protocol") }
    try regular(block.dropFirst(), isTrailer: false)
    if number < 200 {
      if ends { throw .broken("an interim response ends the stream") }
      fields = []
      if length != nil { isStrict = false }
      length = nil
      return
    }
    if number >= 600 { isStrict = false }
    status = number
  }

  /// Handles the regular fields of a field block: those that are not pseudo-fields. Checks the fields of
  /// trailers and does not keep them.
  private mutating func regular(
    _ block: some Collection<FieldBlockReader.Field>, isTrailer: Bool
  ) throws(ReferenceEnding) {
    for field in block {
      if field.name.first == 0x3a { throw .broken("a pseudo-field out of place") }
      let name = String(decoding: field.name, as: UTF8.self)
      // Such a field makes the message malformed (sections 8.2.1 and 8.2.2). Some clients ignore the field
      // instead.
      if !HeaderFields.isToken(name) || name != name.lowercased() || field.value.contains(where: Self.isOdd)
        || field.value.count != ByteClass.trimmed(field.value).count || name == "te"
      {
        isStrict = false
        continue
      }
      if Self.connectionSpecific.contains(name) { throw .broken("a field of HTTP/1.1 connections") }
      if isTrailer {
        if name == "content-length" { isStrict = false }
        continue
      }
      if name == "content-length" { try take(length: field.value) }
      fields.append((name, field.value))
    }
  }

  /// Whether a byte is a control character that must not be in a field value.
  private static func isOdd(_ byte: UInt8) -> Bool { AnswerReference.isControl(byte) }

  /// Handles a `content-length`.
  private mutating func take(length value: [UInt8]) throws(ReferenceEnding) {
    guard !value.isEmpty, value.allSatisfy(AnswerReference.isDigit) else {
      // A client may read a list of equal numbers as that number.
      if value.contains(0x2c) { throw .open }
      throw .broken("the length is none")
    }
    guard value.drop(while: { $0 == 0x30 }).count <= 18 else { throw .broken("the length is too large") }
    let number = value.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    if let length {
      if length != number { throw .broken("there are two lengths") }
      isStrict = false
    }
    if value.count > 18 { isStrict = false }
    length = number
  }

  /// Whether a response with this status has no body.
  private var isBodiless: Bool { status == 204 || status == 304 }

  /// The response of a stream that has not ended, if its body is complete: it has the length in
  /// `content-length`, or the status implies that there is no body. Otherwise `nil`.
  var answerByLength: WholeAnswer? {
    guard let status, !hasTrailers, isBodiless || body.count == length else { return nil }
    return WholeAnswer(status: status, fields: fields, body: isBodiless ? [] : body, isStrict: false)
  }

  /// The response of a stream that has ended.
  ///
  /// - Parameter isStrictSoFar: whether a client must accept the frames that are not part of the message.
  func answer(isStrict isStrictSoFar: Bool) throws(ReferenceEnding) -> WholeAnswer {
    guard let status else { throw .broken("no status") }
    let isStrict = isStrict && isStrictSoFar
    if isBodiless {
      // DATA of a response without a body is not part of the response.
      let isUsual = body.isEmpty && length == nil
      return WholeAnswer(status: status, fields: fields, body: [], isStrict: isStrict && isUsual)
    }
    if let length, body.count != length {
      throw .broken("less DATA than the length says")
    }
    return WholeAnswer(status: status, fields: fields, body: body, isStrict: isStrict)
  }
}
