import CNetwork

/// A message of the kernel on a netlink socket about links, addresses or routes (netlink(7), rtnetlink(7)).
/// The value keeps only the kind of the message, which tells whether the default route may have changed.
/// `NetworkMonitor` then reads the default routes from the kernel.
enum RouteMessage: Hashable, Sendable {
  /// A network interface appeared, disappeared or changed.
  case link
  /// An address was added or removed.
  case address
  /// A route was added or removed.
  case route
  /// The kernel reports that it dropped messages (NLMSG_OVERRUN).
  case overrun
  /// A message that does not affect the path of packets.
  case irrelevant

  /// The error for a datagram whose format is not that of netlink(7).
  struct Malformed: Error, Hashable {
    /// The position of the fault in the datagram, in bytes.
    let offset: Int
  }

  /// Reads the messages of a datagram from the kernel. The parser reads nothing beyond the lengths that the
  /// messages and attributes state. It rejects a length that leads beyond the end of the datagram.
  static func read(_ datagram: some RandomAccessCollection<UInt8>) throws(Malformed) -> [RouteMessage] {
    let bytes = Array(datagram)
    var messages: [RouteMessage] = []
    var offset = 0
    while offset < bytes.count {
      let length = try field(UInt32.self, in: bytes, at: offset)
      let header = MemoryLayout<nlmsghdr>.size
      guard Int(length) >= header, Int(length) <= bytes.count - offset else {
        throw Malformed(offset: offset)
      }
      let kind = try field(UInt16.self, in: bytes, at: offset + 4)
      let end = offset + Int(length)
      if let message = try message(Int(kind), in: bytes, from: offset + header, to: end) {
        messages.append(message)
      }
      offset = min(aligned(end), bytes.count)
    }
    return messages
  }

  /// Reads the message whose data lie between two offsets of the datagram. `nil` for a message without
  /// content (NLMSG_NOOP, NLMSG_DONE).
  ///
  /// - Parameter kind: the type in the message's header, such as RTM_NEWROUTE.
  private static func message(
    _ kind: Int, in bytes: [UInt8], from start: Int, to end: Int
  ) throws(Malformed) -> RouteMessage? {
    switch kind {
    case Int(NLMSG_NOOP), Int(NLMSG_DONE): return nil
    case Int(NLMSG_OVERRUN): return .overrun
    case RTM_NEWLINK, RTM_DELLINK:
      let attributes = try attributes(in: bytes, from: start, MemoryLayout<ifinfomsg>.size, to: end)
      // The kernel reports the scans of a radio as changes of its link.
      return kind == RTM_NEWLINK && attributes.contains(UInt16(IFLA_WIRELESS)) ? .irrelevant : .link
    case RTM_NEWADDR, RTM_DELADDR:
      _ = try attributes(in: bytes, from: start, MemoryLayout<ifaddrmsg>.size, to: end)
      return .address
    case RTM_NEWROUTE, RTM_DELROUTE:
      _ = try attributes(in: bytes, from: start, MemoryLayout<rtmsg>.size, to: end)
      let table = try field(UInt8.self, in: bytes, at: start + 4)
      let flags = try field(UInt32.self, in: bytes, at: start + 8)
      // Two kinds of routes never are the default route: entries of the route cache, and routes to this
      // machine's own addresses. The kernel reports the second kind as address messages as well.
      let isOwn = UInt32(table) == RT_TABLE_LOCAL.rawValue || flags & UInt32(RTM_F_CLONED) != 0
      return isOwn ? .irrelevant : .route
    default: return .irrelevant
    }
  }

  /// The types of a message's attributes, which come after the fixed part of the message. Throws when an
  /// attribute is incomplete.
  ///
  /// - Parameters:
  ///   - start: the offset of the fixed part.
  ///   - fixed: the size of the fixed part in bytes.
  ///   - end: the offset after the message.
  private static func attributes(
    in bytes: [UInt8], from start: Int, _ fixed: Int, to end: Int
  ) throws(Malformed) -> Set<UInt16> {
    guard end - start >= fixed else { throw Malformed(offset: start) }
    var types: Set<UInt16> = []
    var offset = aligned(start + fixed)
    while offset < end {
      guard end - offset >= MemoryLayout<rtattr>.size else { throw Malformed(offset: offset) }
      let length = Int(try field(UInt16.self, in: bytes, at: offset))
      guard length >= MemoryLayout<rtattr>.size, length <= end - offset else {
        throw Malformed(offset: offset)
      }
      // The two highest bits are flags (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
      types.insert(try field(UInt16.self, in: bytes, at: offset + 2) & 0x3fff)
      offset = aligned(offset + length)
    }
    return types
  }

  /// Reads a number in the byte order of this machine, which netlink uses.
  private static func field<Number: FixedWidthInteger>(
    _: Number.Type, in bytes: [UInt8], at offset: Int
  ) throws(Malformed) -> Number {
    let size = MemoryLayout<Number>.size
    guard offset >= 0, bytes.count - offset >= size else { throw Malformed(offset: offset) }
    return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Number.self) }
  }

  /// The offset, rounded up to a multiple of 4. Netlink begins messages and attributes at such offsets.
  private static func aligned(_ offset: Int) -> Int { (offset + 3) & ~3 }
}
