/// One header or trailer field (RFC 9110, section 5).
public struct HeaderField: Hashable, Sendable {
  /// The name, as it is sent or was received. `HeaderFields` ignores the case of names; `==` does not.
  public var name: String
  /// The value, without surrounding white space.
  public var value: String

  /// Creates a field. Does not check it: the client checks the name and value when it sends the request.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }

  /// Whether the names and the values of both fields are equal byte for byte.
  public static func == (one: HeaderField, other: HeaderField) -> Bool {
    one.name.hasSameBytes(as: other.name) && one.value.hasSameBytes(as: other.value)
  }

  /// Hashes the bytes of name and value.
  public func hash(into hasher: inout Hasher) {
    for part in [name, value] {
      var part = part
      part.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
      hasher.combine(UInt8(0xff))
    }
  }
}

/// A list of header fields in the order in which they are sent or were received. A name may occur more than
/// once.
public struct HeaderFields: Hashable, Sendable, ExpressibleByDictionaryLiteral, RandomAccessCollection,
  MutableCollection, RangeReplaceableCollection
{
  private var fields: [HeaderField]

  /// Creates an empty list.
  public init() { fields = [] }

  /// Creates a list from names and values. A name may be repeated.
  public init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { HeaderField($0, $1) }
  }

  /// The first position.
  public var startIndex: Int { 0 }
  /// The position after the last field.
  public var endIndex: Int { fields.count }

  /// Returns an iterator over the fields. This is the array's own iterator, which is faster than the default
  /// iterator of collections.
  public func makeIterator() -> IndexingIterator<[HeaderField]> { fields.makeIterator() }

  /// The field at a position.
  public subscript(position: Int) -> HeaderField {
    get { fields[position] }
    set { fields[position] = newValue }
  }

  /// Replaces a range of fields.
  public mutating func replaceSubrange(_ range: Range<Int>, with new: some Collection<HeaderField>) {
    fields.replaceSubrange(range, with: new)
  }

  /// The value of the field with a name; `nil` if there is none. Reading joins the values of several fields
  /// with the name by ", " (RFC 9110, section 5.3). This is wrong for `Set-Cookie`: use `values(of:)`.
  /// Writing leaves one field with the name and the new value. Writing `nil` removes all fields with the
  /// name.
  public subscript(name: String) -> String? {
    get {
      let values = values(of: name)
      return values.isEmpty ? nil : values.count == 1 ? values[0] : values.joined(separator: ", ")
    }
    set {
      let first = fields.firstIndex { Self.equal($0.name, name) }
      guard let newValue else {
        fields.removeAll { Self.equal($0.name, name) }
        return
      }
      guard let first else {
        fields.append(HeaderField(name, newValue))
        return
      }
      fields[first].value = newValue
      fields = fields.enumerated().filter { $0.offset <= first || !Self.equal($0.element.name, name) }
        .map(\.element)
    }
  }

  /// Returns the values of all fields with a name, in order.
  public func values(of name: String) -> [String] {
    fields.lazy.filter { Self.equal($0.name, name) }.map(\.value)
  }

  /// A copy whose array has no spare capacity, for fields that stay in memory for long.
  package var fitted: HeaderFields {
    var copy = HeaderFields()
    copy.fields = fields.map { $0 }
    return copy
  }

  /// Whether the list contains a field with a name.
  public func contains(name: String) -> Bool { fields.contains { Self.equal($0.name, name) } }

  /// Whether two names are equal, ignoring the case of ASCII letters.
  package static func equal(_ a: String, _ b: String) -> Bool {
    guard a.utf8.count == b.utf8.count else { return false }
    // Names are compared often. A loop with `zip` takes three times as long.
    var others = b.utf8.makeIterator()
    for byte in a.utf8 {
      guard let other = others.next(), byte == other || lowered(byte) == lowered(other) else { return false }
    }
    return true
  }

  private static func lowered(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }

  /// The maximum number of fields of a head, and the maximum size of all names and values in bytes. The
  /// limits apply to requests, received responses and stored responses. They bound the time for looking up,
  /// sorting and signing fields. Computed, because looking up a stored constant costs each response some 100
  /// instructions.
  @inlinable package static var most: (fields: Int, bytes: Int) { (2000, 256 * 1024) }

  /// The size of all names and values in bytes.
  package var size: Int { fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count } }

  /// Returns the reason why the fields cannot be sent together; `nil` if they can.
  package var sizeFault: String? {
    if count > Self.most.fields {
      return "the request has \(count) header fields, and netopt sends at most \(Self.most.fields)"
    }
    let size = size
    guard size > Self.most.bytes else { return nil }
    return "the header fields have \(size) bytes, and netopt sends at most \(Self.most.bytes >> 10) KiB"
  }

  /// Returns the reason why a field cannot be sent; `nil` if it can. The name must be a token, and the value
  /// must not contain a line end or NUL (RFC 9110, section 5.5). Otherwise a value with line ends could add a
  /// field or even a request to the connection.
  package static func fault(of field: HeaderField) -> String? {
    guard isToken(field.name) else {
      // Show only the start: if the colon is missing, the name contains the value, which may be a secret.
      let start = String(decoding: field.name.utf8.prefix(while: tokenByte), as: UTF8.self)
      return "the header name \"\(start)…\" is not a token"
    }
    guard ByteClass.all(field.value, { $0 != 0 && $0 != 0x0a && $0 != 0x0d }) else {
      return "the value of the header \(field.name) has a line end or a NUL"
    }
    return longRunFault(of: field)
  }

  /// Returns the reason why the value of a field is refused: it has a long run of combining marks or flags,
  /// so that comparing the value as a string could take seconds (`SlowText`). `nil` if the value is accepted.
  package static func longRunFault(of field: HeaderField) -> String? {
    guard SlowText.hasLongRun(field.value) else { return nil }
    return "the value of the header \(field.name) cannot be sent: \(SlowText.violation)"
  }

  /// Whether the text is a token (RFC 9110, section 5.6.2).
  package static func isToken(_ text: String) -> Bool {
    !text.isEmpty && ByteClass.all(text, tokenByte)
  }

  /// Whether a byte may occur in a token.
  static func isToken(_ byte: UInt8) -> Bool { tokenByte(byte) }

  /// Whether a byte may occur in a token.
  private static func tokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
    case 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e, 0x5e, 0x5f, 0x60, 0x7c, 0x7e: true
    default: false
    }
  }
}
