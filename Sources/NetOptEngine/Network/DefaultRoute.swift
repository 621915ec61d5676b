package import NetOptCore

/// A default route of this machine. It distinguishes the current network from other networks.
package struct DefaultRoute: Hashable, Sendable, CustomStringConvertible {
  /// The next hop. `nil` on a link that needs no next hop.
  package let gateway: IPAddress?
  /// The name of the interface.
  package let interface: String

  /// The route as ip-route(8) prints it, such as `via 192.0.2.1 dev eth0`.
  package var description: String { (gateway.map { "via \($0) " } ?? "") + "dev \(interface)" }

  /// The current default route of the kernel: the IPv4 route, or the IPv6 route when there is no IPv4 route.
  /// `nil` without a default route.
  package static var current: DefaultRoute? { current(.v4) ?? current(.v6) }

  /// The current default route of the kernel for a family. `nil` when the family has no default route.
  static func current(_ family: IPAddress.Family) -> DefaultRoute? {
    // The tables of the calling thread. /proc/net shows the tables of the process's main thread, which may be
    // in another network namespace.
    switch family {
    case .v4: table("/proc/thread-self/net/route").flatMap(DefaultRoute.init(ipv4:))
    case .v6: table("/proc/thread-self/net/ipv6_route").flatMap(DefaultRoute.init(ipv6:))
    }
  }

  /// Finds the default route with the lowest metric in the text of /proc/net/route (proc(5)). Addresses are
  /// hexadecimal numbers in the byte order of the machine. A route that leads nowhere (blackhole,
  /// unreachable) has the interface `*`.
  init?(ipv4 table: String) {
    let routes = Self.lines(of: table).dropFirst().compactMap { fields -> (Int, DefaultRoute)? in
      guard fields.count >= 8, fields[0] != "*", UInt32(fields[1], radix: 16) == 0,
        UInt32(fields[7], radix: 16) == 0,
        let bits = UInt32(fields[2], radix: 16), let metric = Int(fields[6])
      else { return nil }
      let gateway = bits == 0 ? nil : IPAddress(v4: UInt32(bigEndian: bits))
      return (metric, DefaultRoute(gateway: gateway, interface: String(fields[0])))
    }
    guard let best = routes.min(by: { $0.0 < $1.0 }) else { return nil }
    self = best.1
  }

  /// Finds the default route with the lowest metric in the text of /proc/net/ipv6_route. All numbers are
  /// hexadecimal. The entry with which the kernel rejects packets that have no route has the interface `lo`.
  init?(ipv6 table: String) {
    // The kernel writes the network `::/0` like this.
    let start = String(repeating: "0", count: 32) + " 00 "
    let routes = Self.lines(of: table, beginningWith: start).compactMap {
      fields -> (UInt32, DefaultRoute)? in
      guard fields.count >= 10, fields[9] != "lo",
        let gateway = Self.address(fields[4]), let metric = UInt32(fields[5], radix: 16)
      else { return nil }
      let isNone = gateway.scope == .unspecified
      return (metric, DefaultRoute(gateway: isNone ? nil : gateway, interface: String(fields[9])))
    }
    guard let best = routes.min(by: { $0.0 < $1.0 }) else { return nil }
    self = best.1
  }

  init(gateway: IPAddress?, interface: String) {
    self.gateway = gateway
    self.interface = interface
  }

  /// Splits a table into the lines that begin with a text, and each of these into fields. Splits bytes instead
  /// of characters: splitting characters took most of the time to create a client.
  private static func lines(of table: String, beginningWith start: String = "") -> [[Substring]] {
    table.utf8.split(separator: UInt8(ascii: "\n")).filter { $0.starts(with: start.utf8) }.map { line in
      line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.map { Substring($0) }
    }
  }

  /// Parses the 32 hexadecimal digits of an IPv6 address in proc(5).
  private static func address(_ digits: Substring) -> IPAddress? {
    let digits = Array(digits.utf8)
    guard digits.count == 32 else { return nil }
    let bytes = stride(from: 0, to: 32, by: 2).compactMap {
      UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
    }
    return bytes.count == 16 ? IPAddress(v6: bytes) : nil
  }

  /// Reads a routing table of the kernel. `nil` when it cannot be read.
  private static func table(_ path: String) -> String? {
    (try? FileBytes.read(path, upTo: 1 << 20, as: "the routing table", in: .connect))
      .map { String(decoding: $0, as: UTF8.self) }
  }
}
