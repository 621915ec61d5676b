import CNetwork
import NetOptCore

/// An echo request of ICMP and the reply to it (RFC 792; RFC 4443, section 4).
struct EchoMessage: Hashable, Sendable {
  /// The bytes before the payload.
  static let headerSize = 8
  /// The payload of requests, as ping(8) has it.
  static let payloadSize = 56

  /// Tells the requests of this socket apart from others. A datagram socket has the kernel put its own number here.
  let identifier: UInt16
  let sequence: UInt16
  let payload: [UInt8]

  /// Makes a request with a payload that nobody can guess, so that a reply is one to this request.
  init(identifier: UInt16, sequence: UInt16, using random: inout some RandomNumberGenerator) {
    self.identifier = identifier
    self.sequence = sequence
    payload = (0..<Self.payloadSize).map { _ in UInt8.random(in: .min ... .max, using: &random) }
  }

  /// The bytes of the request. For IPv6 the kernel puts the checksum in, which covers addresses (RFC 3542, section 3.1).
  func request(_ family: IPAddress.Family) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Self.headerSize) + payload
    bytes[0] = UInt8(family == .v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST)
    Self.put(identifier, into: &bytes, at: 4)
    Self.put(sequence, into: &bytes, at: 6)
    if family == .v4 { Self.put(Self.checksum(bytes[...]), into: &bytes, at: 2) }
    return bytes
  }

  /// Whether bytes that came are the reply to this request: type, checksum, identifier, sequence and payload fit.
  ///
  /// - Parameters:
  ///   - bytes: the ICMP message, without an IP header.
  ///   - identifier: the one that the request left with.
  ///   - source: where the message came from, and `destination` where it went: the checksum of IPv6 covers both.
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
    // Over a message that carries its checksum the sum is zero.
    return bytes[start] == UInt8(type) && bytes[start + 1] == 0 && Self.checksum(covered[...]) == 0
      && Self.number(in: bytes, at: start + 4) == identifier
      && Self.number(in: bytes, at: start + 6) == sequence
      && bytes[(start + Self.headerSize)...] == payload[...]
  }

  /// Whether an error of ICMP is about this request: it quotes the beginning of what it is about (RFC 792; RFC 4443, section 3).
  ///
  /// - Parameters:
  ///   - bytes: the ICMP message that the error quotes, without an IP header; perhaps cut off.
  ///   - identifier: the one that the request left with.
  func isQuoted(by bytes: ArraySlice<UInt8>, identifier: UInt16, _ family: IPAddress.Family) -> Bool {
    let start = bytes.startIndex
    let type = family == .v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST
    // What has to be quoted at least ends with the sequence; of the payload as much counts as there is.
    guard bytes.count >= Self.headerSize else { return false }
    let quoted = bytes[(start + Self.headerSize)...].prefix(payload.count)
    return bytes[start] == UInt8(type) && bytes[start + 1] == 0
      && Self.number(in: bytes, at: start + 4) == identifier
      && Self.number(in: bytes, at: start + 6) == sequence
      && quoted.elementsEqual(payload.prefix(quoted.count))
  }

  /// The ICMP message in what a raw socket of IPv4 gives, which is the whole packet (raw(7)); `nil` when it is none.
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

  private static func put(_ number: UInt16, into bytes: inout [UInt8], at offset: Int) {
    bytes[offset] = UInt8(number >> 8)
    bytes[offset + 1] = UInt8(number & 0xff)
  }

  private static func number(in bytes: ArraySlice<UInt8>, at index: Int) -> UInt16 {
    UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])
  }
}
