extension IPAddress {
  /// The part of the Internet from which an address is reachable, according to the IANA special-purpose
  /// address registries (RFC 6890).
  package enum Scope: String, Hashable, Sendable {
    /// Reachable from anywhere. The ranges for documentation, such as 192.0.2.0/24, count as global.
    case global
    /// Reachable only from this host: 127.0.0.0/8, ::1.
    case loopback
    /// Reachable only from within one site: RFC 1918, RFC 6598 (shared address space), RFC 4193, the
    /// deprecated fec0::/10, and 64:ff9b:1::/48, which leads to the translators of one site (RFC 8215).
    case `private`
    /// Reachable only from the same link: 169.254.0.0/16, fe80::/10.
    case linkLocal = "link-local"
    /// The address is a multicast group: 224.0.0.0/4, ff00::/8.
    case multicast
    /// The address belongs to no host: 0.0.0.0/8, ::.
    case unspecified
    /// Unassigned, or not for servers: 192.0.0.0/24 and 2001::/23 (protocols, including Teredo),
    /// 192.88.99.0/24 (6to4 relays, RFC 7526), 198.18.0.0/15 (network benchmarks, RFC 2544), 240.0.0.0/4, and
    /// all IPv6 addresses outside 2000::/3 without another scope.
    case reserved
  }

  /// The scope of the address. An IPv6 address that contains an IPv4 address has the scope of the IPv4
  /// address, because packets to the IPv6 address may arrive at the IPv4 address.
  package var scope: Scope {
    switch family {
    case .v4: Self.scope(v4: UInt32(low))
    case .v6: scopeOfV6
    }
  }

  /// Returns the scope of an IPv4 address, given as its 32 bits in host order.
  private static func scope(v4 bits: UInt32) -> Scope {
    switch (bits >> 24, bits >> 16, bits >> 8) {
    case (0, _, _): .unspecified
    case (127, _, _): .loopback
    case (10, _, _), (_, 0xac10...0xac1f, _), (_, 0xc0a8, _), (_, 0x6440...0x647f, _): .private
    case (_, 0xa9fe, _): .linkLocal
    case (224...239, _, _): .multicast
    case (240..., _, _), (_, _, 0xc00000), (_, _, 0xc05863), (_, 0xc612...0xc613, _): .reserved
    default: .global
    }
  }

  /// The scope of the address, which is an IPv6 address.
  private var scopeOfV6: Scope {
    if high == 0, low <= 1 { return low == 0 ? .unspecified : .loopback }
    switch high >> 48 {
    case 0xfe80...0xfebf: return .linkLocal
    case 0xfec0...0xfeff, 0xfc00...0xfdff: return .private
    case 0xff00...0xffff: return .multicast
    default: break
    }
    if high >> 16 == 0x0064_ff9b_0001 { return .private }
    let scopes = embedded.map(Self.scope(v4:))
    if let scope = scopes.first(where: { $0 != .global }) { return scope }
    // Only 2000::/3 is allocated (RFC 4291, section 2.4), except for 2001::/23.
    return high >> 61 == 1 && high >> 41 != 0x2001_0000 >> 9 || !scopes.isEmpty ? .global : .reserved
  }

  /// The IPv4 addresses that the IPv6 address contains. Packets to the IPv6 address may arrive at them.
  private var embedded: [UInt32] {
    let last = UInt32(truncatingIfNeeded: low)
    var found: [UInt32] = []
    // IPv4-compatible and IPv4-mapped (RFC 4291, section 2.5.5), and IPv4-translated (RFC 2765, section 2.1).
    if high == 0, [0, 0xffff, 0xffff_0000].contains(low >> 32) { found.append(last) }
    // Translators (RFC 6052, section 2.1).
    if high == 0x0064_ff9b_0000_0000, low >> 32 == 0 { found.append(last) }
    // 6to4 (RFC 3056, section 2).
    if high >> 48 == 0x2002 { found.append(UInt32(truncatingIfNeeded: high >> 16)) }
    // ISATAP, under any allocated prefix (RFC 5214, section 6.1).
    if high >> 61 == 1, low >> 32 & 0xfcff_ffff == 0x0000_5efe { found.append(last) }
    return found
  }
}
