import NetOptCore
import Testing

@testable import NetOptEngine

/// The check of DNS messages before c-ares reads them. It refuses messages with names that are too long or
/// have too many pointers. It leaves most other faults to c-ares.
@Suite(.timeLimit(.minutes(1))) struct DNSMessageTests {
  // MARK: Accepted messages

  @Test("a message whose names have at most 255 octets is accepted, complete or truncated anywhere")
  func acceptsBoundedNames() {
    var random = SplitMix64(seed: 1)
    for _ in 0..<1_000 {
      var message = RandomMessage(using: &random)
      message.addRecords(using: &random)
      let bytes = message.writer.bytes
      #expect(bounded(bytes), "\(bytes)")
      let cut = Array(bytes[..<Int.random(in: 12...bytes.count, using: &random)])
      #expect(bounded(cut), "\(cut)")
    }
  }

  /// A server that cannot parse a query sends an answer without a question.
  @Test("an answer without a question is accepted")
  func acceptsNoQuestion() {
    #expect(bounded(DNSMessageWriter().bytes))
  }

  @Test("a name with 49 or 50 pointers is accepted, as c-ares 1.18 does", arguments: [49, 50])
  func acceptsPointers(count: Int) {
    #expect(bounded(chain(of: count)))
  }

  @Test("a malformed message is accepted when every version of c-ares refuses it itself")
  func leavesBrokenMessages() {
    // Labels of the two reserved kinds, a pointer to a place behind the end of the message, and a label that
    // is longer than the rest of the message.
    for owner in [[0x40], [0x80, 0], [0xff, 0xff], [63, 0x61]] as [[UInt8]] {
      var writer = DNSMessageWriter()
      writer.record(.answer, type: 1, owner: { $0.raw(owner) }, data: { _ in })
      #expect(bounded(Array(writer.bytes.prefix(12 + owner.count))), "\(owner)")
    }
    // The data of the record reaches beyond the end of the message.
    var writer = DNSMessageWriter()
    writer.record(.answer, type: 1, owner: { $0.name([]) }, data: { $0.raw([127, 0, 0, 1]) })
    #expect(bounded(Array(writer.bytes.dropLast())))
  }

  // MARK: Refused messages

  @Test("a message with a name of more than 255 octets is refused, wherever the name is")
  func refusesLongNames() {
    var random = SplitMix64(seed: 2)
    for _ in 0..<1_000 {
      let octets = random.below(2) == 0 ? 256 : Int.random(in: 256...2_000, using: &random)
      let name = DNSMessageWriter.Name.random(octets: octets, using: &random)
      var message = RandomMessage(using: &random)
      message.addRecords(using: &random)
      message.add(name, as: .random(using: &random), compressed: random.below(2) == 0)
      #expect(!bounded(message.writer.bytes), "\(name)")
    }
  }

  @Test(
    "a name of 255 octets is accepted and a name of 256 octets is refused, in every position",
    arguments: RandomMessage.NamePosition.allCases)
  func knowsTheBound(position: RandomMessage.NamePosition) {
    var random = SplitMix64(seed: 3)
    for octets in [255, 256] {
      for compressed in [false, true] {
        var message = RandomMessage(using: &random)
        let name = DNSMessageWriter.Name.random(octets: octets, using: &random)
        // First adds a record whose owner is the name without its first label. So the compressed name is a
        // label and a pointer to that owner. A question must come first in the message, so its name has no
        // pointer.
        if position != .question { message.add(Array(name.dropFirst()), as: .owner, compressed: true) }
        message.add(name, as: position, compressed: compressed)
        #expect(bounded(message.writer.bytes) == (octets == 255))
      }
    }
  }

  @Test("a name with 51 pointers or with a cycle of pointers is refused")
  func refusesUnboundedPointers() {
    #expect(!bounded(chain(of: 51)))
    // A pointer to itself, two pointers to each other, and a cycle with a label.
    for owner in [[0xc0, 12], [0xc0, 14, 0xc0, 12], [1, 0x61, 0xc0, 12]] as [[UInt8]] {
      var writer = DNSMessageWriter()
      writer.record(.answer, type: 1, owner: { $0.raw(owner) }, data: { $0.raw([127, 0, 0, 1]) })
      #expect(!bounded(writer.bytes), "\(owner)")
    }
  }

  @Test("a question with a cycle, two questions, and less than a header are refused")
  func refusesOtherMessages() {
    #expect(!bounded(DNSMessageWriter().bytes[..<4] + [0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1]))
    var writer = DNSMessageWriter()
    for _ in 0..<2 { writer.question([[0x61]]) }
    #expect(!bounded(writer.bytes))
    for count in 0..<12 { #expect(!bounded(Array(writer.bytes.prefix(count)))) }
  }

  // MARK: Arbitrary messages

  @Test("random octets neither trap nor are accepted with a name beyond the bounds")
  func survivesRandomOctets() {
    var random = SplitMix64(seed: 4)
    for _ in 0..<3_000 {
      var bytes = (0..<Int.random(in: 0...600, using: &random)).map { _ in random.octet() }
      // The header announces one question or none. With more questions, the check would refuse the message
      // before it reads a name.
      if bytes.count > 5 { (bytes[4], bytes[5]) = (0, UInt8(random.below(2))) }
      _ = bounded(bytes)
      check(bytes)
    }
  }

  @Test("an accepted message has no name beyond the bounds for c-ares 1.18, after any mutation")
  func boundsMutatedMessages() {
    var random = SplitMix64(seed: 5)
    var accepted = 0
    for _ in 0..<3_000 {
      var message = RandomMessage(using: &random)
      message.addRecords(using: &random)
      var bytes = message.writer.bytes
      for _ in 0..<Int.random(in: 1...8, using: &random) {
        let index = Int.random(in: 12..<bytes.count, using: &random)
        bytes[index] = random.below(3) == 0 ? 0xc0 : random.octet()
      }
      if bounded(bytes) { accepted += 1 }
      check(bytes)
    }
    #expect(accepted > 500)
  }

  @Test("64 KB of records with names of 127 labels are accepted within the time limit")
  func checksLargeMessage() {
    var writer = DNSMessageWriter()
    writer.question([])
    let start = writer.bytes.count
    let name = DNSMessageWriter.Name(repeating: [0x61], count: 127)
    writer.record(
      .answer, type: 5, owner: { $0.name(name, compressed: false) }, data: { $0.pointer(to: start) })
    while writer.bytes.count < 65_000 {
      writer.record(.answer, type: 5, owner: { $0.pointer(to: start) }, data: { $0.pointer(to: start) })
    }
    #expect(bounded(writer.bytes))
  }

  // MARK: Support

  /// Whether the check accepts a message.
  private func bounded(_ bytes: [UInt8]) -> Bool { DNSMessage.hasBoundedNames(bytes.span) }

  /// Expects of an accepted message that c-ares 1.18 copies at most 255 octets and follows at most 50
  /// pointers for each name in it.
  private func check(_ bytes: [UInt8]) {
    guard bounded(bytes) else { return }
    let walk = OldAres.walk(bytes)
    #expect(walk.octets <= 255 && walk.pointers <= 50, "\(bytes)")
  }

  /// Returns a message with a record whose owner leads through a chain of this many pointers to the root.
  private func chain(of pointers: Int) -> [UInt8] {
    var writer = DNSMessageWriter()
    writer.question([])
    // The data of a record of a type that no parser reads has all pointers of the chain but one. The first
    // pointer leads to the root in the question, and each other pointer to the pointer before it. The owner
    // of the next record is the last pointer of the chain.
    let start = writer.bytes.count + 11
    writer.record(.answer, type: 99, owner: { $0.name([]) }) { writer in
      for index in 0..<(pointers - 1) { writer.pointer(to: index == 0 ? 12 : start + 2 * (index - 1)) }
    }
    writer.record(
      .answer, type: 1, owner: { $0.pointer(to: start + 2 * (pointers - 2)) },
      data: { $0.raw([127, 0, 0, 1]) })
    return writer.bytes
  }
}

/// A copy of how c-ares 1.18 reads the names in a message (`ares__parse_into_addrinfo`, `name_length`).
private enum OldAres {
  /// Reads the names in a message, up to the place where c-ares 1.18 stops.
  ///
  /// - Returns: the largest number of octets and the largest number of pointers of a name.
  static func walk(_ bytes: [UInt8]) -> (octets: Int, pointers: Int) {
    var most = (octets: 0, pointers: 0)
    func name(at start: Int) -> Int? {
      guard start < bytes.count else { return nil }
      var (position, end, octets, pointers) = (start, -1, 1, 0)
      defer { most = (max(most.octets, octets), max(most.pointers, pointers)) }
      while bytes[position] != 0 {
        switch bytes[position] & 0xc0 {
        case 0xc0:
          guard position + 1 < bytes.count else { return nil }
          let offset = Int(bytes[position] & 0x3f) << 8 | Int(bytes[position + 1])
          guard offset < bytes.count else { return nil }
          if end < 0 { end = position + 2 }
          position = offset
          pointers += 1
          if pointers > 50 { return nil }
        case 0:
          let length = Int(bytes[position])
          guard position + length + 1 < bytes.count else { return nil }
          octets += length + 1
          position += length + 1
        default: return nil
        }
      }
      return end < 0 ? position + 1 : end
    }
    func number(_ position: Int) -> Int { Int(bytes[position]) << 8 | Int(bytes[position + 1]) }
    guard bytes.count >= 12, number(4) == 1, var position = name(at: 12) else { return most }
    position += 4
    for _ in 0..<number(6) {
      guard position <= bytes.count, let end = name(at: position), end + 10 <= bytes.count else {
        return most
      }
      position = end + 10
      guard position + number(end + 8) <= bytes.count else { return most }
      if number(end) == 5, number(end + 2) == 1, name(at: position) == nil { return most }
      position += number(end + 8)
    }
    return most
  }
}

extension SplitMix64 {
  fileprivate mutating func octet() -> UInt8 { UInt8.random(in: 0...255, using: &self) }
}
