import Glibc

/// An IPv4 or IPv6 address, without a zone.
///
/// Parsing and printing are the C library's (`inet_pton(3)`, `inet_ntop(3)`): IPv6 text is accepted in every form
/// of RFC 4291 and printed in the form of RFC 5952.
public struct IPAddress: Hashable, Sendable, BitwiseCopyable {
  /// The version of the Internet Protocol.
  public enum Family: Hashable, Sendable, BitwiseCopyable {
    /// IPv4.
    case v4
    /// IPv6.
    case v6
  }

  /// The version of the address.
  public let family: Family

  /// The address in network order, as two big-endian halves; an IPv4 address is in the low 32 bits.
  private let high: UInt64
  private let low: UInt64

  /// Reads an address from its text form, without brackets. `nil` when the text is no address.
  public init?(_ text: some StringProtocol) {
    // inet_pton stops at a NUL, so text with one would be read in part.
    guard text.utf8.count <= 45, !text.utf8.contains(0) else { return nil }
    let text = String(text)
    var v4 = in_addr()
    if inet_pton(AF_INET, text, &v4) == 1 {
      self.init(v4: UInt32(bigEndian: v4.s_addr))
      return
    }
    var v6 = in6_addr()
    guard inet_pton(AF_INET6, text, &v6) == 1 else { return nil }
    self.init(v6: withUnsafeBytes(of: &v6) { Array($0) })
  }

  /// Makes an IPv4 address from its 32 bits in host order: `0x7f000001` is 127.0.0.1.
  public init(v4 bits: UInt32) {
    family = .v4
    high = 0
    low = UInt64(bits)
  }

  /// Makes an IPv6 address from its 16 bytes in network order.
  ///
  /// - Precondition: there are 16 bytes.
  public init(v6 bytes: some Collection<UInt8>) {
    precondition(bytes.count == 16, "an IPv6 address has 16 bytes, not \(bytes.count)")
    family = .v6
    high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    low = bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The bytes in network order: 4 of them, or 16.
  public var bytes: [UInt8] {
    switch family {
    case .v4: (0..<4).map { UInt8(truncatingIfNeeded: low >> (24 - 8 * $0)) }
    case .v6:
      (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> (56 - 8 * ($0 % 8))) }
    }
  }

  /// What an address can be reached from, after the IANA special-purpose registries (RFC 6890).
  public enum Scope: String, Hashable, Sendable {
    /// Reachable from anywhere; documentation ranges count as global.
    case global
    /// This host: 127.0.0.0/8, ::1.
    case loopback
    /// One site: RFC 1918, RFC 6598 (shared address space), RFC 4193 and the deprecated fec0::/10.
    case `private`
    /// One link: 169.254.0.0/16, fe80::/10.
    case linkLocal = "link-local"
    /// A group: 224.0.0.0/4, ff00::/8.
    case multicast
    /// No address: 0.0.0.0/8, ::.
    case unspecified
    /// Not assigned, and broadcast: 240.0.0.0/4.
    case reserved
  }

  /// What the address can be reached from. An IPv4-mapped IPv6 address has the scope of the address inside it.
  public var scope: Scope {
    switch family {
    case .v4: Self.scope(v4: UInt32(low))
    case .v6: scopeOfV6
    }
  }

  private static func scope(v4 bits: UInt32) -> Scope {
    switch (bits >> 24, bits >> 16) {
    case (0, _): .unspecified
    case (127, _): .loopback
    case (10, _), (_, 0xac10...0xac1f), (_, 0xc0a8), (_, 0x6440...0x647f): .private
    case (_, 0xa9fe): .linkLocal
    case (224...239, _): .multicast
    case (240..., _): .reserved
    default: .global
    }
  }

  private var scopeOfV6: Scope {
    if high == 0 {
      if low == 0 { return .unspecified }
      if low == 1 { return .loopback }
      if low >> 32 == 0xffff { return Self.scope(v4: UInt32(truncatingIfNeeded: low)) }
    }
    return switch high >> 48 {
    case 0xfe80...0xfebf: .linkLocal
    case 0xfec0...0xfeff, 0xfc00...0xfdff: .private
    case 0xff00...0xffff: .multicast
    default: .global
    }
  }
}

extension IPAddress: CustomStringConvertible {
  /// The text form, without brackets.
  public var description: String {
    let bytes = bytes
    let length = Int(INET6_ADDRSTRLEN)
    return String(unsafeUninitializedCapacity: length) { text in
      text.withMemoryRebound(to: CChar.self) { text in
        _ = inet_ntop(family == .v4 ? AF_INET : AF_INET6, bytes, text.baseAddress, socklen_t(length))
        return text.firstIndex(of: 0) ?? 0
      }
    }
  }

  /// The text form as it stands in a URL: an IPv6 address in brackets (RFC 3986, section 3.2.2).
  public var hostText: String { family == .v4 ? description : "[\(description)]" }
}

extension IPAddress: Comparable {
  /// A total order: IPv4 before IPv6, then by value.
  public static func < (a: IPAddress, b: IPAddress) -> Bool {
    if a.family != b.family { return a.family == .v4 }
    return (a.high, a.low) < (b.high, b.low)
  }
}

/// An address and a port: where a connection goes.
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
  /// The address.
  public var address: IPAddress
  /// The TCP port.
  public var port: UInt16

  /// Makes an endpoint.
  public init(_ address: IPAddress, port: UInt16) {
    self.address = address
    self.port = port
  }

  /// `192.0.2.1:443` or `[2001:db8::1]:443`.
  public var description: String { "\(address.hostText):\(port)" }
}
