import NetOptCore
import Testing

@testable import NetOptEngine

/// Tests the bytes of ICMP echo requests, and the check of replies and of ICMP errors.
@Suite struct EchoMessageTests {
  /// The IPv4 address from which the request is sent.
  private let here = IPAddress(v4: 0xc000_0201)
  /// The IPv4 address to which the request is sent.
  private let there = IPAddress(v4: 0xc000_0202)
  /// The IPv6 address from which the request is sent.
  private let here6 = IPAddress(v6: [0x20, 0x01, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11) + [1])
  /// The IPv6 address to which the request is sent.
  private let there6 = IPAddress(v6: [0x20, 0x01, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11) + [2])
  /// The echo request that the tests compare with replies and ICMP errors.
  private let message: EchoMessage

  init() {
    var random = SplitMix64(seed: 5)
    message = EchoMessage(identifier: 0x1234, sequence: 7, using: &random)
  }

  /// Returns the reply to `message` as RFC 792 and RFC 4443 define it: the bytes of the request with another
  /// type and a new checksum.
  private func reply(_ family: IPAddress.Family) -> [UInt8] {
    var bytes = message.request(family)
    bytes[0] = family == .v4 ? 0 : 129
    bytes[2] = 0
    bytes[3] = 0
    // The ICMPv6 checksum also covers the pseudo-header (RFC 8200, section 8.1).
    var covered = bytes
    if family == .v6 {
      covered = there6.bytes + here6.bytes + [0, 0, 0, UInt8(bytes.count), 0, 0, 0, 58] + bytes
    }
    let sum = EchoMessage.checksum(covered[...])
    bytes[2] = UInt8(sum >> 8)
    bytes[3] = UInt8(sum & 0xff)
    return bytes
  }

  /// Whether these bytes are the reply to `message`. The bytes are an ICMP message that came from `there` or
  /// `there6`.
  ///
  /// - Parameter identifier: the identifier with which the request was sent.
  private func isAnswered(_ bytes: [UInt8], _ family: IPAddress.Family, identifier: UInt16 = 0x1234) -> Bool {
    family == .v4
      ? message.isAnswered(by: bytes[...], identifier: identifier, from: there, to: here)
      : message.isAnswered(by: bytes[...], identifier: identifier, from: there6, to: here6)
  }

  /// The example of RFC 1071, section 3.
  @Test("the checksum matches the example of RFC 1071, and handles odd and empty input")
  func checksums() {
    #expect(EchoMessage.checksum([0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]) == ~0xddf2)
    #expect(EchoMessage.checksum([0x01]) == ~0x0100)
    #expect(EchoMessage.checksum([]) == 0xffff)
  }

  @Test("an IPv4 request has a valid checksum, and an IPv6 request has none")
  func requests() {
    let bytes = message.request(.v4)
    #expect(bytes.count == 64 && bytes[0] == 8 && bytes[1] == 0)
    #expect(bytes[4...7] == [0x12, 0x34, 0, 7])
    #expect(EchoMessage.checksum(bytes[...]) == 0)
    // The kernel fills in the checksum of an IPv6 request.
    #expect(message.request(.v6)[0...3] == [128, 0, 0, 0])
  }

  @Test(
    "a reply matches only with the right length, identifier and bits", arguments: [IPAddress.Family.v4, .v6])
  func matchesReply(family: IPAddress.Family) {
    let reply = reply(family)
    #expect(isAnswered(reply, family))
    #expect(!isAnswered(reply, family, identifier: 0x1235))
    #expect(!isAnswered(message.request(family), family))
    #expect(!isAnswered(Array(reply.dropLast()), family))
    #expect(!isAnswered(reply + [0], family))
    #expect(!isAnswered([], family))
    // A change of any bit is detected. The checksum covers the bits that no other check covers.
    for index in reply.indices {
      for bit in 0..<8 {
        var other = reply
        other[index] ^= 1 << UInt8(bit)
        #expect(!isAnswered(other, family), "byte \(index), bit \(bit)")
      }
    }
  }

  @Test(
    "an ICMP error matches a request only if it quotes at least 8 bytes of that request",
    arguments: [IPAddress.Family.v4, .v6])
  func matchesQuote(family: IPAddress.Family) {
    let request = message.request(family)
    func isQuoted(_ bytes: [UInt8], identifier: UInt16 = 0x1234) -> Bool {
      message.isQuoted(by: bytes[...], identifier: identifier, family)
    }
    // Routers quote at least 8 bytes of the request. Most routers quote the whole request.
    for count in 8...request.count { #expect(isQuoted(Array(request.prefix(count)))) }
    for count in 0..<8 { #expect(!isQuoted(Array(request.prefix(count)))) }
    // Bytes after the request do not matter.
    #expect(isQuoted(request + [0, 0, 0, 0]))
    #expect(!isQuoted(request, identifier: 0x1235))
    #expect(!isQuoted(reply(family)))
    // Every part of the request must match, except the checksum in the bytes 2 and 3.
    for index in [0, 1, 4, 5, 6, 7, 8, 63] {
      var other = request
      other[index] ^= 1
      #expect(!isQuoted(other), "byte \(index)")
    }
  }

  @Test("extracting an ICMP message removes the IPv4 header, and refuses other packets")
  func packetHeader() {
    let reply = reply(.v4)
    var header = [UInt8](repeating: 0, count: 24)
    // An IPv4 header of six words (24 bytes). Its byte 9 is the protocol: 1 for ICMP, 6 for TCP.
    header[0] = 0x46
    header[9] = 1
    #expect(EchoMessage.message(inPacket: (header + reply)[...]).map(Array.init) == reply)
    header[9] = 6
    #expect(EchoMessage.message(inPacket: (header + reply)[...]) == nil)
    // The packet is shorter than its header, the header is shorter than 20 bytes, or the packet is empty.
    #expect(EchoMessage.message(inPacket: [0x4f, 0, 0]) == nil)
    #expect(EchoMessage.message(inPacket: [0x41] + reply) == nil)
    #expect(EchoMessage.message(inPacket: []) == nil)
  }
}
