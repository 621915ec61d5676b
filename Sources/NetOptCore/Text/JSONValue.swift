/// A JSON value to be written (RFC 8259). An object keeps the order of its members, so that output matches
/// its documentation. Foundation's `JSONEncoder` sorts keys or writes them in random order.
package enum JSONValue: Hashable, Sendable {
  /// One member of an object.
  package struct Member: Hashable, Sendable {
    /// The name.
    package var name: String
    /// The value.
    package var value: JSONValue

    /// Creates a member.
    package init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// The value `null`.
  case null
  /// A Boolean value.
  case bool(Bool)
  /// A whole number.
  case integer(Int64)
  /// A number. Infinities and NaN, which JSON cannot represent, are written as `null`.
  case number(Double)
  /// A string.
  case string(String)
  /// The elements of an array, in order.
  case array([JSONValue])
  /// The members of an object, in order. Names are not checked for duplicates.
  case object([Member])

  /// Returns a string, or `null` for `nil`.
  package static func optional(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }

  /// Returns a whole number, or `null` for `nil`. The number is clamped to the range of 64 bits.
  package static func optional(_ number: (some BinaryInteger)?) -> JSONValue {
    number.map { .integer(Int64(clamping: $0)) } ?? .null
  }

  /// Returns a duration in whole microseconds, or `null` for `nil`. Published output gives all times in
  /// microseconds.
  package static func microseconds(_ duration: Duration?) -> JSONValue { .optional(duration?.microseconds) }

  /// Adds a member at the end of an object.
  ///
  /// - Precondition: the value is an object.
  package mutating func append(_ name: String, _ value: JSONValue) {
    guard case .object(var members) = self else { preconditionFailure("only an object has members") }
    // Release the old value first, so that the array is not copied.
    self = .null
    members.append(Member(name, value))
    self = .object(members)
  }
}

extension JSONValue: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral
{
  /// Creates an object.
  package init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(elements.map { Member($0, $1) })
  }
  /// Creates an array.
  package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// Creates a string.
  package init(stringLiteral value: String) { self = .string(value) }
  /// Creates a whole number.
  package init(integerLiteral value: Int64) { self = .integer(value) }
  /// Creates a number.
  package init(floatLiteral value: Double) { self = .number(value) }
  /// Creates a Boolean value.
  package init(booleanLiteral value: Bool) { self = .bool(value) }
  /// Creates `null`.
  package init(nilLiteral: ()) { self = .null }
}

extension JSONValue: CustomStringConvertible {
  /// The JSON text on one line, without spaces.
  package var description: String { String(decoding: bytes(), as: UTF8.self) }

  /// Returns the JSON text in UTF-8.
  ///
  /// - Parameter indented: whether each member and element is on a line of its own. Default: false, for a
  ///   single line.
  package func bytes(indented: Bool = false) -> [UInt8] {
    var out: [UInt8] = []
    append(to: &out, depth: indented ? 0 : nil, every: .max) { _ in }
    return out
  }

  /// Writes the JSON text in UTF-8 on one line, in pieces. A piece that has reached 16 KiB ends only within a
  /// string: at the next escape, or after 16 KiB of the string without an escape. This bounds the memory for
  /// escapes: an escape takes up to six bytes for one byte of text, so the whole output could be several
  /// times as large as the strings.
  ///
  /// - Throws: the error of the sink. The function writes nothing after an error.
  package func write<Failure: Error>(to sink: ([UInt8]) throws(Failure) -> Void) throws(Failure) {
    var out: [UInt8] = []
    var failure: Failure?
    append(to: &out, depth: nil, every: Self.piece) { piece in
      if failure == nil {
        do throws(Failure) { try sink(piece) } catch { failure = error }
      }
      piece.removeAll(keepingCapacity: true)
    }
    if let failure { throw failure }
    try sink(out)
  }

  /// Appends a text as a JSON string, for output that is written without values because of its amount.
  package static func append(string text: String, to out: inout [UInt8]) {
    append(text, to: &out, every: .max) { _ in }
  }

  /// A closure that takes the bytes written so far and empties the buffer.
  private typealias Flush = (inout [UInt8]) -> Void

  /// The size in bytes at which `write` may pass the buffer to the sink.
  private static let piece = 16 << 10

  /// Appends the JSON text of this value.
  ///
  /// - Parameters:
  ///   - depth: the number of objects and arrays around this value, for the indentation; `nil` for a text on
  ///     one line.
  ///   - limit: the size of the buffer in bytes at which `flush` is called. The function compares the size
  ///     with the limit only within strings: at each escape, and after `limit` bytes without an escape.
  private func append(to out: inout [UInt8], depth: Int?, every limit: Int, _ flush: Flush) {
    switch self {
    case .null: out += "null".utf8
    case .bool(let value): out += (value ? "true" : "false").utf8
    case .integer(let value): out.append(decimal: value)
    case .number(let value): out += (value.isFinite ? String(value) : "null").utf8
    case .string(let text): Self.append(text, to: &out, every: limit, flush)
    case .array(let values):
      Self.append(values, between: (0x5b, 0x5d), to: &out, depth: depth) { value, out, depth in
        value.append(to: &out, depth: depth, every: limit, flush)
      }
    case .object(let members):
      Self.append(members, between: (0x7b, 0x7d), to: &out, depth: depth) { member, out, depth in
        Self.append(member.name, to: &out, every: limit, flush)
        out += (depth == nil ? ":" : ": ").utf8
        member.value.append(to: &out, depth: depth, every: limit, flush)
      }
    }
  }

  /// Appends the elements of an array or the members of an object, with brackets and commas.
  private static func append<Item>(
    _ items: [Item], between brackets: (UInt8, UInt8), to out: inout [UInt8], depth: Int?,
    item: (Item, inout [UInt8], Int?) -> Void
  ) {
    out.append(brackets.0)
    for (index, value) in items.enumerated() {
      if index > 0 { out.append(0x2c) }
      if let depth { breakLine(in: &out, depth + 1) }
      item(value, &out, depth.map { $0 + 1 })
    }
    if let depth, !items.isEmpty { breakLine(in: &out, depth) }
    out.append(brackets.1)
  }

  /// Appends a line end and two spaces for each level of nesting.
  private static func breakLine(in out: inout [UInt8], _ depth: Int) {
    out.append(0x0a)
    out += repeatElement(0x20, count: 2 * depth)
  }

  /// Writes a string with the escapes that RFC 8259, section 7 requires. Also escapes all other characters
  /// that could control a terminal.
  private static func append(_ text: String, to out: inout [UInt8], every limit: Int, _ flush: Flush) {
    var text = text
    out.append(0x22)
    text.withUTF8 { bytes in
      // The index of the first byte that has not been written. The bytes from there to `index` need no
      // escape. Most texts need no escapes at all.
      var start = 0
      var index = 0
      while index < bytes.count {
        let byte = bytes[index]
        let isPlain = byte >= 0x20 && byte < 0x7f && byte != 0x22 && byte != 0x5c
        if isPlain, index - start < limit {
          index += 1
          continue
        }
        if start < index { out.append(contentsOf: bytes[start..<index]) }
        if out.count >= limit { flush(&out) }
        if !isPlain {
          let size = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
          append(bytes[index..<index + size], to: &out)
          index += size
        }
        start = index
      }
      out.append(contentsOf: bytes[start...])
    }
    out.append(0x22)
  }

  /// Decodes one scalar. The bytes are valid UTF-8, because a `String` contains only valid UTF-8.
  private static func scalar(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Unicode.Scalar? {
    guard let first = bytes.first else { return nil }
    let bits = bytes.count == 1 ? UInt32(first) : UInt32(first) & (0x7f >> UInt32(bytes.count))
    return Unicode.Scalar(bytes.dropFirst().reduce(bits) { $0 << 6 | UInt32($1 & 0x3f) })
  }

  /// What is written for each ASCII byte: the byte itself or its escape. Computed once, because a text may
  /// have millions of bytes that need an escape.
  private static let escapes: [[UInt8]] = (0..<0x80 as Range<UInt8>).map { byte in
    switch byte {
    case 0x22: Array(#"\""#.utf8)
    case 0x5c: Array(#"\\"#.utf8)
    case 0x08: Array(#"\b"#.utf8)
    case 0x09: Array(#"\t"#.utf8)
    case 0x0a: Array(#"\n"#.utf8)
    case 0x0c: Array(#"\f"#.utf8)
    case 0x0d: Array(#"\r"#.utf8)
    case 0..<0x20, 0x7f: Array(#"\u00"#.utf8) + [Hex.lower[Int(byte >> 4)], Hex.lower[Int(byte & 15)]]
    default: [byte]
    }
  }

  /// Writes one scalar, given as its UTF-8 bytes. Writes an escape if the scalar needs one.
  private static func append(_ bytes: Slice<UnsafeBufferPointer<UInt8>>, to out: inout [UInt8]) {
    if let first = bytes.first, first < 0x80 { return out.append(contentsOf: escapes[Int(first)]) }
    guard let scalar = scalar(bytes), scalar.steersTerminal else { return out.append(contentsOf: bytes) }
    for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
      out.append(0x5c)
      out.append(0x75)
      for shift in [12, 8, 4, 0] as [UInt16] { out.append(Hex.lower[Int(unit >> shift & 15)]) }
    }
  }
}
