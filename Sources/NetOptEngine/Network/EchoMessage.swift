import CNetwork
import NetOptCore

/// An ICMP echo request, and the check of its reply (RFC 792; RFC 4443, section 4).
struct EchoMessage: Hashable, Sendable {
  /// The size of the header in bytes.
  static let headerSize = 8
  /// The size of a request's payload in bytes, the same as in ping(8).
  static let payloadSize = 56

  /// The identifier field of the ICMP header. It distinguishes the requests of one socket from the requests
  /// of other sockets. On a datagram socket, the kernel replaces it with the number in
  /// `EchoSocket.identifier`.
  let identifier: UInt16
  /// The sequence number field of the ICMP header.
  let sequence: UInt16
  /// The `payloadSize` random bytes after the header. A reply repeats them.
  let payload: [UInt8]

  /// Makes a request with an unpredictable payload, so that no other message passes as its reply.
  init(identifier: UInt16, sequence: UInt16, using random: inout some RandomNumberGenerator) {
    self.identifier = identifier
    self.sequence = sequence
    payload = (0..<Self.payloadSize).map { _ in UInt8.random(in: .min ... .max, using: &random) }
  }

  /// The bytes of the request as an ICMP message (IPv4) or ICMPv6 message. For IPv6 the checksum also covers
  /// the addresses, and the kernel fills it in (RFC 3542, section 3.1).
  func request(_ family: IPAddress.Family) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Self.headerSize) + payload
    bytes[0] = UInt8(family == .v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST)
    Self.put(identifier, into: &bytes, at: 4)
    Self.put(sequence, into: &bytes, at: 6)
    if family == .v4 { Self.put(Self.checksum(bytes[...]), into: &bytes, at: 2) }
    return bytes
  }

  /// Whether a message is the reply to this request: type, checksum, identifier, sequence and payload match.
  ///
  /// - Parameters:
  ///   - bytes: the ICMP message, without an IP header.
  ///   - identifier: the identifier with which the request was sent.
  ///   - source: the address that sent the message. The IPv6 checksum covers `source` and `destination`.
  ///   - destination: the address that received the message.
  func isAnswered(
    by bytes: ArraySlice<UInt8>, identifier: UInt16, from source: IPAddress, to destination: IPAddress
  ) -> Bool {
    guard bytes.count == Self.headerSize + payload.count else { return false }
    let type: Int32
    var covered: [UInt8] = []
    switch source.family {
    case .v4: type = ICMP_ECHOREPLY
    case .v6:
      type = ICMP6_ECHO_REPLY
      // The pseudo-header (RFC 8200, section 8.1): addresses, length, next header.
      covered =
        source.bytes + destination.bytes + [
          0, 0, 0, UInt8(bytes.count), 0, 0, 0, UInt8(netopt_protocol_icmpv6),
        ]
    }
    covered += bytes
    let start = bytes.startIndex
    // The checksum over a message that includes its checksum is zero.
    return bytes[start] == UInt8(type) && bytes[start + 1] == 0 && Self.checksum(covered[...]) == 0
      && Self.number(in: bytes, at: start + 4) == identifier
      && Self.number(in: bytes, at: start + 6) == sequence
      && bytes[(start + Self.headerSize)...] == payload[...]
  }

  /// Whether an ICMP error is about this request. An ICMP error quotes the beginning of the packet that
  /// caused it (RFC 792; RFC 4443, section 3).
  ///
  /// - Parameters:
  ///   - bytes: the ICMP message that the error quotes, without an IP header; may be truncated.
  ///   - identifier: the identifier with which the request was sent.
  ///   - family: the family of the address to which the request was sent.
  func isQuoted(by bytes: ArraySlice<UInt8>, identifier: UInt16, _ family: IPAddress.Family) -> Bool {
    let start = bytes.startIndex
    let type = family == .v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST
    // An ICMP error quotes at least the bytes up to the sequence number. Of the payload, only the quoted part
    // is compared.
    guard bytes.count >= Self.headerSize else { return false }
    let quoted = bytes[(start + Self.headerSize)...].prefix(payload.count)
    return bytes[start] == UInt8(type) && bytes[start + 1] == 0
      && Self.number(in: bytes, at: start + 4) == identifier
      && Self.number(in: bytes, at: start + 6) == sequence
      && quoted.elementsEqual(payload.prefix(quoted.count))
  }

  /// Extracts the ICMP message from an IPv4 packet, because a raw IPv4 socket delivers whole packets
  /// (raw(7)). `nil` when the packet is not an ICMP packet.
  static func message(inPacket packet: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    guard let first = packet.first, first >> 4 == 4 else { return nil }
    let length = Int(first & 0x0f) * 4
    guard length >= 20, packet.count >= length, packet[packet.startIndex + 9] == UInt8(netopt_protocol_icmp)
    else {
      return nil
    }
    return packet.dropFirst(length)
  }

  /// The Internet checksum (RFC 1071).
  static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt16 {
    var sum: UInt32 = 0
    for (offset, byte) in bytes.enumerated() {
      sum += offset.isMultiple(of: 2) ? UInt32(byte) << 8 : UInt32(byte)
    }
    while sum > 0xffff { sum = (sum & 0xffff) + (sum >> 16) }
    return ~UInt16(sum)
  }

  /// Writes a number in network byte order.
  private static func put(_ number: UInt16, into bytes: inout [UInt8], at offset: Int) {
    bytes[offset] = UInt8(number >> 8)
    bytes[offset + 1] = UInt8(number & 0xff)
  }

  /// Reads a number in network byte order.
  private static func number(in bytes: ArraySlice<UInt8>, at index: Int) -> UInt16 {
    UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])
  }
}
