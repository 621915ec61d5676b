import NetOptCore

/// A DNS answer that a test builds from a question and random records. The names that `addRecords` adds have
/// at most 255 octets. Many of them have the same end, and they are compressed.
struct RandomMessage {
  /// The positions in a message in which c-ares reads names.
  ///
  /// - `question`: the name of the question. `owner`: the owner of an A record.
  /// - `alias`, `nameServer`, `pointer`: the data of a CNAME, NS or PTR record.
  /// - `authority`, `mailbox`: the first and the second name in the data of an SOA record.
  /// - `mailServer`, `signer`, `service`: the name in the data of an MX, SIG or SRV record.
  /// - `target`, `binding`: the name in the data of a NAPTR or HTTPS record.
  enum NamePosition: CaseIterable {
    case question, owner, alias, nameServer, pointer, authority, mailbox, mailServer, signer, service, target,
      binding

    /// Returns a random position other than `question`.
    static func random(using random: inout SplitMix64) -> NamePosition {
      // `addRecords` has already added the question.
      NamePosition.allCases.dropFirst().randomElement(using: &random) ?? .owner
    }
  }

  /// The writer with the message so far.
  private(set) var writer = DNSMessageWriter()
  /// The names from which `addRecords` chooses. It adds new ones. The first one is the name of the question.
  private var names: [DNSMessageWriter.Name]

  /// Begins a message that has no question and no record yet.
  init(using random: inout SplitMix64) {
    names = [.random(octets: Int.random(in: 3...60, using: &random), using: &random)]
  }

  /// Adds the question, and up to 5 records in each section.
  mutating func addRecords(using random: inout SplitMix64) {
    add(names[0], as: .question, compressed: true)
    for section in DNSMessageWriter.Section.allCases {
      for _ in 0..<random.below(6) {
        let owner = name(using: &random)
        switch random.below(6) {
        case 0:
          record(section, 1, owner) { $0.raw([127, 0, 0, 1]) }
        case 1:
          record(section, 28, owner) { $0.raw([UInt8](repeating: 1, count: 16)) }
        case 2:
          // A record of an unknown type, with random data that may look like names.
          let data = (0..<random.below(40)).map { _ in UInt8.random(in: 0...255, using: &random) }
          record(section, 65_280, owner) { $0.raw(data) }
        default:
          add(name(using: &random), as: .random(using: &random), compressed: true, in: section, of: owner)
        }
      }
    }
  }

  /// Adds a question or a record with a name in a given position.
  ///
  /// - Parameters:
  ///   - compressed: whether the end of the name may be replaced with a pointer.
  ///   - section: the section of the record.
  ///   - owner: the owner of the record, if the name is in the record's data.
  mutating func add(
    _ name: DNSMessageWriter.Name, as position: NamePosition, compressed: Bool,
    in section: DNSMessageWriter.Section = .additional,
    of owner: DNSMessageWriter.Name = []
  ) {
    /// Adds a record. Its data is the octets `ahead`, the name, and the octets `behind`.
    func data(_ type: UInt16, _ ahead: [UInt8] = [], _ behind: [UInt8] = []) {
      record(section, type, owner) { writer in
        writer.raw(ahead)
        writer.name(name, compressed: compressed)
        writer.raw(behind)
      }
    }
    switch position {
    case .question: writer.question(name)
    case .owner:
      writer.record(
        section, type: 1, owner: { $0.name(name, compressed: compressed) }, data: { $0.raw([127, 0, 0, 1]) })
    case .alias: data(5)
    case .nameServer: data(2)
    case .pointer: data(12)
    case .authority: data(6, [], [0] + [UInt8](repeating: 0, count: 20))
    case .mailbox: data(6, [1, 0x61, 0], [UInt8](repeating: 0, count: 20))
    case .mailServer: data(15, [0, 10])
    case .signer: data(24, [UInt8](repeating: 0, count: 18), [1, 2, 3])
    case .service: data(33, [0, 1, 0, 1, 0, 80])
    case .target: data(35, [0, 1, 0, 1, 1, 0x73, 3, 0x53, 0x49, 0x50, 0])
    case .binding: data(65, [0, 1])
    }
  }

  /// Returns one of `names`, or a new name, which it adds to `names`. Most new names are a known name with
  /// labels before it.
  private mutating func name(using random: inout SplitMix64) -> DNSMessageWriter.Name {
    let known = names.randomElement(using: &random) ?? []
    switch random.below(4) {
    case 0: return known
    case 1: names.append(.random(octets: Int.random(in: 3...255, using: &random), using: &random))
    default:
      let label = DNSMessageWriter.Name.random(octets: Int.random(in: 3...20, using: &random), using: &random)
      if (label + known).octets <= 255 { names.append(label + known) }
    }
    return names.last ?? known
  }

  /// Adds a record.
  ///
  /// - Parameter data: writes the data of the record.
  private mutating func record(
    _ section: DNSMessageWriter.Section, _ type: UInt16, _ owner: DNSMessageWriter.Name,
    data: (inout DNSMessageWriter) -> Void
  ) {
    writer.record(section, type: type, owner: { $0.name(owner) }, data: data)
  }
}
