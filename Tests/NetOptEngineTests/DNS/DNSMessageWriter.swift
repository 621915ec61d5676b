import NetOptCore

/// Writes DNS messages (RFC 1035, section 4.1). Compresses names by default: when the message already
/// contains the end of a name, it writes a pointer to this end.
struct DNSMessageWriter {
  /// A name as its labels, without the label of the root.
  typealias Name = [[UInt8]]

  /// A section for records. The raw value is the offset of the section's count in the header.
  enum Section: Int, CaseIterable {
    case answer = 6
    case authority = 8
    case additional = 10
  }

  /// The message so far.
  private(set) var bytes: [UInt8]
  /// Where the names in the message, and the ends of these names, begin in `bytes`. Pointers to these places
  /// replace the same labels in later names.
  private var offsets: [Name: Int] = [:]

  /// Begins an answer without a question.
  init(id: UInt16 = 0) {
    bytes = [UInt8(id >> 8), UInt8(id & 0xff), 0x81, 0x80] + [UInt8](repeating: 0, count: 8)
  }

  /// Begins the answer to a query, with the query's ID and question.
  init(answering query: [UInt8]) {
    // The name of the question ends with an empty label. The type and the class follow, two octets each.
    let end = (query.dropFirst(12).firstIndex(of: 0) ?? 12) + 5
    bytes = query[..<2] + [0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0] + query[12..<end]
  }

  /// Whether a query asks for IPv4 addresses (type A).
  static func asksForIPv4(_ query: [UInt8]) -> Bool {
    query[(query.dropFirst(12).firstIndex(of: 0) ?? 12) + 2] == 1
  }

  /// Adds a question for the IPv4 addresses of a name (type A, class IN).
  mutating func question(_ name: Name) {
    self.name(name)
    bytes += [0, 1, 0, 1]
    count(4)
  }

  /// Adds a record of the class IN with a time to live of 60 s.
  ///
  /// - Parameters:
  ///   - section: the section of the record. Records must be added in the order of the sections.
  ///   - type: the number of the record's type, such as 1 for A.
  ///   - owner: writes the name of the record's owner.
  ///   - data: writes the data of the record.
  mutating func record(
    _ section: Section, type: UInt16, owner: (inout DNSMessageWriter) -> Void,
    data: (inout DNSMessageWriter) -> Void
  ) {
    owner(&self)
    bytes += [UInt8(type >> 8), UInt8(type & 0xff), 0, 1, 0, 0, 0, 60, 0, 0]
    let start = bytes.count
    data(&self)
    let length = bytes.count - start
    (bytes[start - 2], bytes[start - 1]) = (UInt8(length >> 8 & 0xff), UInt8(length & 0xff))
    count(section.rawValue)
  }

  /// Adds octets to the message as they are.
  mutating func raw(_ octets: some Sequence<UInt8>) { bytes += octets }

  /// Adds a pointer to an offset in the message.
  mutating func pointer(to offset: Int) { bytes += [0xc0 | UInt8(offset >> 8), UInt8(offset & 0xff)] }

  /// Adds a name. Writes its labels up to the point where the message already contains the rest of the name.
  /// Then writes a pointer to that rest.
  ///
  /// - Parameter compressed: whether to write a pointer. Default: true.
  mutating func name(_ name: Name, compressed: Bool = true) {
    var rest = name[...]
    while let label = rest.first {
      if compressed, let offset = offsets[Array(rest)] { return pointer(to: offset) }
      if offsets[Array(rest)] == nil, bytes.count < 0x4000 { offsets[Array(rest)] = bytes.count }
      bytes += [UInt8(label.count)] + label
      rest = rest.dropFirst()
    }
    bytes.append(0)
  }

  /// Adds 1 to a number of questions or records in the header.
  ///
  /// - Parameter offset: the offset of the number in the header.
  private mutating func count(_ offset: Int) {
    let number = (Int(bytes[offset]) << 8 | Int(bytes[offset + 1])) + 1
    (bytes[offset], bytes[offset + 1]) = (UInt8(number >> 8), UInt8(number & 0xff))
  }
}

extension DNSMessageWriter.Name {
  /// The length of the name in octets: its labels, a length octet for each label, and the octet of the root.
  var octets: Int { reduce(1) { $0 + 1 + $1.count } }

  /// Returns a random name of a length in octets: 1, or at least 3.
  static func random(octets: Int, using random: inout SplitMix64) -> Self {
    var name: Self = []
    var rest = octets - 1
    while rest > 0 {
      // The octets that the next label takes, its length octet included. A rest of 1 octet would have no room
      // for another label, so the label is then one octet longer or shorter.
      var taken = Int.random(in: 2...Swift.min(64, rest), using: &random)
      if rest - taken == 1 { taken += taken < 64 ? 1 : -1 }
      name.append([UInt8](repeating: UInt8.random(in: 0x61...0x7a, using: &random), count: taken - 1))
      rest -= taken
    }
    return name
  }
}
