import NetOptCore

/// Writes DNS messages (RFC 1035, section 4.1). Compresses names by default.
struct DNSMessageWriter {
  /// A name as its labels, without the label of the root.
  typealias Name = [[UInt8]]

  /// A section for records. The raw value is the offset of the section's count in the header.
  enum Section: Int, CaseIterable {
    case answer = 6
    case authority = 8
    case additional = 10
  }

  private(set) var bytes: [UInt8]
  private var offsets: [Name: Int] = [:]

  /// Begins an answer without a question.
  init(id: UInt16 = 0) {
    bytes = [UInt8(id >> 8), UInt8(id & 0xff), 0x81, 0x80] + [UInt8](repeating: 0, count: 8)
  }

  /// Begins the answer to a query, with the query's ID and question.
  init(answering query: [UInt8]) {
    // The question's name ends with an empty label; its type and class follow.
    let end = (query.dropFirst(12).firstIndex(of: 0) ?? 12) + 5
    bytes = query[..<2] + [0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0] + query[12..<end]
  }

  /// Whether a query asks for IPv4 addresses (type A).
  static func asksForIPv4(_ query: [UInt8]) -> Bool {
    query[(query.dropFirst(12).firstIndex(of: 0) ?? 12) + 2] == 1
  }

  /// Adds a question.
  mutating func question(_ name: Name) {
    self.name(name)
    bytes += [0, 1, 0, 1]
    count(4)
  }

  /// Adds a record.
  ///
  /// - Parameters:
  ///   - section: the section of the record. Records must be added in the order of the sections.
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

  /// Adds octets.
  mutating func raw(_ octets: some Sequence<UInt8>) { bytes += octets }

  /// Adds a pointer to an offset in the message.
  mutating func pointer(to offset: Int) { bytes += [0xc0 | UInt8(offset >> 8), UInt8(offset & 0xff)] }

  /// Adds a name. Writes labels until the message already contains the rest of the name, and then a pointer
  /// to that rest.
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

  private mutating func count(_ offset: Int) {
    let number = (Int(bytes[offset]) << 8 | Int(bytes[offset + 1])) + 1
    (bytes[offset], bytes[offset + 1]) = (UInt8(number >> 8), UInt8(number & 0xff))
  }
}

extension DNSMessageWriter.Name {
  /// The length of the name in octets, including the octet of the root.
  var octets: Int { reduce(1) { $0 + 1 + $1.count } }

  /// Returns a random name of a length in octets: 1, or at least 3.
  static func random(octets: Int, using random: inout SplitMix64) -> Self {
    var name: Self = []
    var rest = octets - 1
    while rest > 0 {
      // The octets of a label with its length octet. They must not leave a rest of 1 octet, which fits no
      // label.
      var taken = Int.random(in: 2...Swift.min(64, rest), using: &random)
      if rest - taken == 1 { taken += taken < 64 ? 1 : -1 }
      name.append([UInt8](repeating: UInt8.random(in: 0x61...0x7a, using: &random), count: taken - 1))
      rest -= taken
    }
    return name
  }
}
