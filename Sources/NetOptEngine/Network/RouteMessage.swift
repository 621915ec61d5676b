import CNetwork

/// What the kernel says on a netlink socket about links, addresses and routes (netlink(7), rtnetlink(7)), as far as it
/// matters here: whether the way out may have changed. What it is now is asked for afterwards.
enum RouteMessage: Hashable, Sendable {
  /// A network interface has appeared, gone or changed.
  case link
  /// An address was added or taken away.
  case address
  /// A route was added or taken away.
  case route
  /// Messages were lost.
  case overrun
  /// Something that has no say in where packets go.
  case irrelevant

  /// A datagram that is not made of messages as the manual has them.
  struct Malformed: Error, Hashable {
    /// Where in the datagram.
    let offset: Int
  }

  /// Reads a datagram from the kernel. Nothing is read beyond the lengths that are stated, and none is believed that
  /// leads beyond its end.
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

  private static func message(
    _ kind: Int, in bytes: [UInt8], from start: Int, to end: Int
  ) throws(Malformed) -> RouteMessage? {
    switch kind {
    case Int(NLMSG_NOOP), Int(NLMSG_DONE): return nil
    case Int(NLMSG_OVERRUN): return .overrun
    case RTM_NEWLINK, RTM_DELLINK:
      let attributes = try attributes(in: bytes, from: start, MemoryLayout<ifinfomsg>.size, to: end)
      // A radio's scans are told as changes of its link.
      return kind == RTM_NEWLINK && attributes.contains(UInt16(IFLA_WIRELESS)) ? .irrelevant : .link
    case RTM_NEWADDR, RTM_DELADDR:
      _ = try attributes(in: bytes, from: start, MemoryLayout<ifaddrmsg>.size, to: end)
      return .address
    case RTM_NEWROUTE, RTM_DELROUTE:
      _ = try attributes(in: bytes, from: start, MemoryLayout<rtmsg>.size, to: end)
      let table = try field(UInt8.self, in: bytes, at: start + 4)
      let flags = try field(UInt32.self, in: bytes, at: start + 8)
      // Entries of the route cache, and routes to this machine's own addresses, which are told of as addresses.
      let isOwn = UInt32(table) == RT_TABLE_LOCAL.rawValue || flags & UInt32(RTM_F_CLONED) != 0
      return isOwn ? .irrelevant : .route
    default: return .irrelevant
    }
  }

  /// The types of the attributes that follow a message's fixed part, each of them whole.
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

  /// A number in the byte order of this machine, which netlink uses.
  private static func field<Number: FixedWidthInteger>(
    _: Number.Type, in bytes: [UInt8], at offset: Int
  ) throws(Malformed) -> Number {
    let size = MemoryLayout<Number>.size
    guard offset >= 0, bytes.count - offset >= size else { throw Malformed(offset: offset) }
    return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Number.self) }
  }

  private static func aligned(_ offset: Int) -> Int { (offset + 3) & ~3 }
}
