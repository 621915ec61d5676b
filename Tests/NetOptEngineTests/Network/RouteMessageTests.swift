import NetOptCore
import Testing

@testable import NetOptEngine

/// Tests the parser of netlink messages about links, addresses and routes (netlink(7), rtnetlink(7)).
@Suite struct RouteMessageTests {
  /// Returns the bytes of a netlink message.
  ///
  /// - Parameters:
  ///   - type: the type of the message, such as 16 (RTM_NEWLINK).
  ///   - body: the fixed part after the header. Its format depends on the type.
  ///   - attributes: the types and values of the attributes after the fixed part.
  private static func message(
    _ type: UInt16, _ body: [UInt8], attributes: [(type: UInt16, value: [UInt8])] = []
  ) -> [UInt8] {
    var payload = body
    for attribute in attributes {
      payload += bytes(UInt16(4 + attribute.value.count)) + bytes(attribute.type) + attribute.value
      payload += [UInt8](repeating: 0, count: (4 - attribute.value.count % 4) % 4)
    }
    return bytes(UInt32(16 + payload.count)) + bytes(type) + bytes(UInt16(0)) + bytes(UInt32(7))
      + bytes(UInt32(0)) + payload
  }

  /// The bytes of a number in the byte order of this machine, which netlink uses.
  private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number) { Array($0) }
  }

  /// The fixed part of a message about an IPv4 route (`rtmsg`). Table 254 is the main routing table.
  private static func route(table: UInt8 = 254, flags: UInt32 = 0) -> [UInt8] {
    [2, 0, 0, 0, table, 3, 0, 1] + bytes(flags)
  }

  /// The message that this machine has a new address, 192.0.2.1 (RTM_NEWADDR).
  private static let address = message(20, [2, 24, 0, 0, 2, 0, 0, 0], attributes: [(1, [192, 0, 2, 1])])
  /// The message that the interface veth0 is new or has changed (RTM_NEWLINK).
  private static let link = message(
    16, [UInt8](repeating: 0, count: 16), attributes: [(3, Array("veth0\0".utf8))])
  /// A datagram with three messages. The last one is about a new route with the gateway 192.0.2.1
  /// (RTM_NEWROUTE).
  private static let burst = link + address + message(24, route(), attributes: [(5, [192, 0, 2, 1])])

  @Test("the parser reads a burst of link, address and route messages")
  func readsBurst() throws {
    #expect(try RouteMessage.read(Self.burst) == [.link, .address, .route])
    #expect(try RouteMessage.read([UInt8]()) == [])
  }

  @Test("the parser distinguishes irrelevant messages, link changes, overruns and the end")
  func irrelevantMessages() throws {
    // An entry of the route cache (RTM_F_CLONED, 0x200), a route to an address of this machine (table 255),
    // the scan of a radio (IFLA_WIRELESS, 11), and a neighbour (RTM_NEWNEIGH, 28).
    #expect(try RouteMessage.read(Self.message(24, Self.route(flags: 0x200))) == [.irrelevant])
    #expect(try RouteMessage.read(Self.message(25, Self.route(table: 255))) == [.irrelevant])
    let radio = Self.message(16, [UInt8](repeating: 0, count: 16), attributes: [(11, [1])])
    #expect(try RouteMessage.read(radio) == [.irrelevant])
    #expect(try RouteMessage.read(Self.message(28, [UInt8](repeating: 0, count: 12))) == [.irrelevant])
    // RTM_DELLINK, NLMSG_OVERRUN and NLMSG_DONE.
    #expect(try RouteMessage.read(Self.message(17, [UInt8](repeating: 0, count: 16))) == [.link])
    #expect(try RouteMessage.read(Self.message(4, [])) == [.overrun])
    #expect(try RouteMessage.read(Self.message(3, [])) == [])
  }

  @Test("a truncated message or a message with a wrong length is malformed")
  func malformedMessages() {
    // A datagram that is cut between two messages is valid.
    for count in 1..<Self.burst.count
    where ![Self.link.count, Self.link.count + Self.address.count].contains(count) {
      #expect(throws: RouteMessage.Malformed.self) { try RouteMessage.read(Self.burst.prefix(count)) }
    }
    // Wrong lengths in the header of the message.
    for length in [0, 1, 15, 17, 0x7fff_ffff, 0xffff_ffff] as [UInt32] {
      var bytes = Self.address
      bytes.replaceSubrange(0..<4, with: Self.bytes(length))
      #expect(throws: RouteMessage.Malformed.self) { try RouteMessage.read(bytes) }
    }
    // Wrong lengths in the header of the attribute, which begins at byte 24.
    for length in [0, 3, 200, 0xffff] as [UInt16] {
      var bytes = Self.address
      bytes.replaceSubrange(24..<26, with: Self.bytes(length))
      #expect(throws: RouteMessage.Malformed.self) { try RouteMessage.read(bytes) }
    }
  }

  /// For any bytes, the parser returns messages or throws an error. It never traps.
  @Test("the parser reads mutated bytes, or refuses them with an offset in range")
  func mutatedBytes() {
    var random = SplitMix64(seed: 20_261_121)
    var refused = 0
    for _ in 0..<20_000 {
      var bytes = Self.burst
      for _ in 0...random.below(4) {
        let index = Int(random.below(UInt64(bytes.count)))
        switch random.below(4) {
        case 0: bytes[index] = UInt8(random.below(256))
        case 1: bytes[index] ^= 1 << UInt8(random.below(8))
        case 2: bytes.removeSubrange(index..<min(bytes.count, index + Int(random.below(8)) + 1))
        default: bytes.insert(UInt8(random.below(256)), at: index)
        }
        if bytes.isEmpty { break }
      }
      do throws(RouteMessage.Malformed) {
        let messages = try RouteMessage.read(bytes)
        #expect(messages.count <= bytes.count / 16)
      } catch {
        refused += 1
        #expect(error.offset <= bytes.count)
      }
    }
    #expect(refused > 1000)
  }
}
