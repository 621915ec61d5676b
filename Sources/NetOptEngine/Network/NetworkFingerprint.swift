import NetOptCore

/// Identifies the network of this machine: a hash of the default routes and their source addresses. Because
/// it is a hash, data stored under it does not reveal the addresses.
///
/// Two networks that look the same from inside have the same fingerprint, such as two homes whose routers
/// have the same default settings. This does little harm: the data stored under a fingerprint are estimates,
/// and the first connections correct them.
package struct NetworkFingerprint: Hashable, Sendable, CustomStringConvertible {
  /// A default route with its source address.
  struct Way: Hashable, Sendable {
    let route: DefaultRoute
    /// The address from which this machine sends on the route; `nil` when the kernel names none.
    let source: IPAddress?
  }

  /// The fingerprint as 16 hexadecimal digits.
  package let description: String
  /// Whether there is a default route. A machine without a default route is between two networks, or in an
  /// isolated network.
  package let isRouted: Bool

  /// Makes the fingerprint from the default routes: at most one for each address family.
  init(_ ways: [Way]) {
    let text = ways.map { way in
      // Only the network half of an IPv6 source address counts: the other half changes every day (RFC 8981).
      let source = way.source.map { $0.family == .v4 ? $0.bytes : Array($0.bytes.prefix(8)) }
      return "\(way.route) src \(source.map { "[\($0.map(String.init).joined(separator: ", "))]" } ?? "none")"
    }
    let digits = String(StableHash.fnv1a(text.joined(separator: "\n").utf8), radix: 16)
    description = String(repeating: "0", count: 16 - digits.count) + digits
    isRouted = !ways.isEmpty
  }

  /// The fingerprint of the current network of the calling thread. Reads two small files of the kernel and
  /// sends nothing.
  package static var current: NetworkFingerprint {
    let families: [(IPAddress.Family, IPAddress)] = [
      (.v4, IPAddress(v4: 0xc629_0004)),
      (.v6, IPAddress(v6: [0x20, 0x01, 0x05, 0x03, 0xba, 0x3e, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0x30])),
    ]
    // Each family has the address of a root name server, which stands for any address on the Internet: no
    // network has a special route to it.
    return NetworkFingerprint(
      families.compactMap { family, anywhere in
        DefaultRoute.current(family).map { Way(route: $0, source: SourceAddress.source(for: anywhere)) }
      })
  }
}
