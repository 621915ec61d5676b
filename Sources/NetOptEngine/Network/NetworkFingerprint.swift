import NetOptCore

/// Tells the network that this machine is in apart from others: made of the default routes and the source addresses
/// that go with them, and hashed, so that what is kept under it does not spell them out.
///
/// Two networks that look alike from within, such as two homes with the same router, have the same fingerprint. What is
/// kept under it are estimates, which the first connections correct.
package struct NetworkFingerprint: Hashable, Sendable, CustomStringConvertible {
  /// A way out of this machine.
  struct Way: Hashable, Sendable {
    let route: DefaultRoute
    /// What this machine sends from.
    let source: IPAddress?
  }

  /// 16 hexadecimal digits.
  package let description: String
  /// Whether there is a default route. A machine without one is between two networks, or in one that leads nowhere else.
  package let isRouted: Bool

  /// Makes the fingerprint of the ways out, one for each family that has any.
  init(_ ways: [Way]) {
    let text = ways.map { way in
      // Of an IPv6 source the network's half counts: the other one changes every day (RFC 8981).
      let source = way.source.map { $0.family == .v4 ? $0.bytes : Array($0.bytes.prefix(8)) }
      return "\(way.route) src \(source.map { "\($0)" } ?? "none")"
    }
    let digits = String(StableHash.fnv1a(text.joined(separator: "\n").utf8), radix: 16)
    description = String(repeating: "0", count: 16 - digits.count) + digits
    isRouted = !ways.isEmpty
  }

  /// The fingerprint of the network that the calling thread is in now. Reads two small files of the kernel's and sends
  /// nothing.
  package static var current: NetworkFingerprint {
    let families: [(IPAddress.Family, IPAddress)] = [
      (.v4, IPAddress(v4: 0xc629_0004)),
      (.v6, IPAddress(v6: [0x20, 0x01, 0x05, 0x03, 0xba, 0x3e, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0x30])),
    ]
    // A root name server stands for everywhere: no network has a special route to it.
    return NetworkFingerprint(
      families.compactMap { family, anywhere in
        DefaultRoute.current(family).map { Way(route: $0, source: SourceAddress.source(for: anywhere)) }
      })
  }
}
