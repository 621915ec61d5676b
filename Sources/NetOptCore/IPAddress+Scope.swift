extension IPAddress {
  /// What an address can be reached from, after the IANA special-purpose registries (RFC 6890).
  public enum Scope: String, Hashable, Sendable {
    /// Reachable from anywhere; documentation ranges count as global.
    case global
    /// This host: 127.0.0.0/8, ::1.
    case loopback
    /// One site: RFC 1918, RFC 6598 (shared address space), RFC 4193, the deprecated fec0::/10, and 64:ff9b:1::/48, through which one
    /// site's translators are reached (RFC 8215).
    case `private`
    /// One link: 169.254.0.0/16, fe80::/10.
    case linkLocal = "link-local"
    /// A group: 224.0.0.0/4, ff00::/8.
    case multicast
    /// No address: 0.0.0.0/8, ::.
    case unspecified
    /// Not assigned, or not for servers: 192.0.0.0/24 and 2001::/23 (protocols, Teredo among them), 198.18.0.0/15 (tests of networks,
    /// RFC 2544), 240.0.0.0/4, 100::/64 and 100:0:0:1::/64 (discarded), 5f00::/16 (segments, RFC 9602).
    case reserved
  }

  /// What the address can be reached from. An IPv6 address that has an IPv4 address inside has that one's scope: packets to it may
  /// end there.
  public var scope: Scope {
    switch family {
    case .v4: Self.scope(v4: UInt32(low))
    case .v6: scopeOfV6
    }
  }

  private static func scope(v4 bits: UInt32) -> Scope {
    switch (bits >> 24, bits >> 16, bits >> 8) {
    case (0, _, _): .unspecified
    case (127, _, _): .loopback
    case (10, _, _), (_, 0xac10...0xac1f, _), (_, 0xc0a8, _), (_, 0x6440...0x647f, _): .private
    case (_, 0xa9fe, _): .linkLocal
    case (224...239, _, _): .multicast
    case (240..., _, _), (_, _, 0xc00000), (_, 0xc612...0xc613, _): .reserved
    default: .global
    }
  }

  private var scopeOfV6: Scope {
    if high == 0, low <= 1 { return low == 0 ? .unspecified : .loopback }
    switch high >> 48 {
    case 0xfe80...0xfebf: return .linkLocal
    case 0xfec0...0xfeff, 0xfc00...0xfdff: return .private
    case 0xff00...0xffff: return .multicast
    case 0x5f00: return .reserved
    default: break
    }
    if high >> 16 == 0x0064_ff9b_0001 { return .private }
    if high == 0x0100_0000_0000_0000 || high == 0x0100_0000_0000_0001 || high >> 41 == 0x2001_0000 >> 9 {
      return .reserved
    }
    return embedded.map(Self.scope(v4:)) ?? .global
  }

  /// The IPv4 address inside an IPv6 address: where the IPv4 network may be reached through it.
  private var embedded: UInt32? {
    let last = UInt32(truncatingIfNeeded: low)
    // IPv4-compatible and IPv4-mapped (RFC 4291, section 2.5.5), and IPv4-translated (RFC 2765, section 2.1).
    if high == 0, [0, 0xffff, 0xffff_0000].contains(low >> 32) { return last }
    // Through translators (RFC 6052, section 2.1).
    if high == 0x0064_ff9b_0000_0000, low >> 32 == 0 { return last }
    // 6to4 (RFC 3056, section 2).
    if high >> 48 == 0x2002 { return UInt32(truncatingIfNeeded: high >> 16) }
    // ISATAP, under any prefix (RFC 5214, section 6.1).
    if low >> 32 & 0xfcff_ffff == 0x0000_5efe { return last }
    return nil
  }
}
