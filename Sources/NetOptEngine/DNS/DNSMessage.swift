/// The check that a DNS message must pass before c-ares reads it (RFC 1035, section 4.1).
///
/// Before 1.34.7, c-ares expands compressed names far beyond 255 octets. It expands the owner name of each
/// record anew. c-ares 1.18 follows 50 pointers for each name, and each pointer can lead through 16 KB of
/// labels. So 64 KB of records expand to gigabytes. In c-ares 1.22 to 1.34.6 a name can have 16 KB. c-ares
/// 1.34.7 limits the octets of a name.
package enum DNSMessage {
  /// The longest name in octets: its labels, a length octet for each label, and the octet of the root (RFC
  /// 1035, section 2.3.4).
  static let longestName = 255
  /// The most pointers in one name. c-ares 1.18 refuses names with more. Names from real servers have a
  /// handful of pointers.
  static let mostPointers = 50

  /// The size of the header in octets.
  private static let headerLength = 12
  /// The size in octets of the fields between a record's owner name and its data: type, class, time to live
  /// and the length of the data.
  private static let fixedLength = 10

  /// Whether no name that c-ares may expand exceeds `longestName` or `mostPointers`. Also false for a message
  /// that is shorter than a header or has more than one question: no version of c-ares accepts such a message
  /// as an answer.
  ///
  /// Checks the name of the question, the owner names of all records, and the names in the data of the record
  /// types that c-ares parses. The check stops at the end of the message, or at a question or owner name that
  /// is malformed. Every version of c-ares also stops there, and reports the error.
  package static func hasBoundedNames(_ message: Span<UInt8>) -> Bool {
    guard message.count >= headerLength else { return false }
    let questions = number(at: 4, of: message)
    guard questions <= 1 else { return false }
    var position = headerLength
    if questions == 1 {
      switch name(at: position, of: message) {
      case .ends(let end): position = end + 4
      case .broken: return true
      case .unbounded: return false
      }
    }
    let records = number(at: 6, of: message) + number(at: 8, of: message) + number(at: 10, of: message)
    for _ in 0..<records {
      switch name(at: position, of: message) {
      case .ends(let end): position = end + fixedLength
      case .broken: return true
      case .unbounded: return false
      }
      guard position <= message.count else { return true }
      let type = number(at: position - fixedLength, of: message)
      guard hasBoundedData(at: position, type: type, of: message) else { return false }
      position += number(at: position - 2, of: message)
      guard position <= message.count else { return true }
    }
    return true
  }

  /// Whether the names in a record's data are bounded. A malformed name does not end the check of the
  /// message, because some versions of c-ares do not read that name.
  ///
  /// The types are those in whose data c-ares 1.34 expands names. c-ares 1.18 expands only the name in a
  /// CNAME record.
  ///
  /// - Parameters:
  ///   - start: the position of the data in the message, in octets.
  ///   - type: the number of the record's type, such as 5 for CNAME.
  private static func hasBoundedData(at start: Int, type: Int, of message: Span<UInt8>) -> Bool {
    var position = start
    var names = 1
    switch type {
    // NS, CNAME, PTR.
    case 2, 5, 12: break
    // SOA.
    case 6: names = 2
    // MX, SVCB, HTTPS.
    case 15, 64, 65: position += 2
    // SIG.
    case 24: position += 18
    // SRV.
    case 33: position += 6
    // NAPTR: the name comes after three strings, each with its length in front.
    case 35:
      position += 4
      for _ in 0..<3 where position < message.count { position += 1 + Int(message[position]) }
    default: names = 0
    }
    for _ in 0..<names {
      switch name(at: position, of: message) {
      case .ends(let end): position = end
      case .broken: return true
      case .unbounded: return false
      }
    }
    return true
  }

  /// The result of following a name through its pointers.
  private enum Name {
    /// The name is well-formed and within the limits. The value is the position after the name, in octets:
    /// after its first pointer, or after its last label when it has no pointer.
    case ends(Int)
    /// The name leads out of the message, or to a label of a reserved kind (RFC 1035, section 4.1.4).
    case broken
    /// The name is too long or has too many pointers. A cycle of pointers ends here too.
    case unbounded
  }

  /// Follows a name through its pointers and counts its octets.
  private static func name(at start: Int, of message: Span<UInt8>) -> Name {
    var position = start
    var end: Int?
    var octets = 0
    var pointers = 0
    while position < message.count {
      let length = Int(message[position])
      switch length & 0xc0 {
      case 0xc0:
        guard position + 1 < message.count else { return .broken }
        pointers += 1
        guard pointers <= mostPointers else { return .unbounded }
        end = end ?? position + 2
        position = (length & 0x3f) << 8 | Int(message[position + 1])
      case 0:
        octets += 1 + length
        guard octets <= longestName else { return .unbounded }
        position += 1 + length
        if length == 0 { return .ends(end ?? position) }
      default:
        return .broken
      }
    }
    return .broken
  }

  /// Reads 16 bits in network byte order.
  private static func number(at position: Int, of message: Span<UInt8>) -> Int {
    Int(message[position]) << 8 | Int(message[position + 1])
  }
}
