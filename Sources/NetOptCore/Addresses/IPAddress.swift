import Glibc

/// An IPv4 or IPv6 address, without a zone (the `%eth0` of `fe80::1%eth0`).
///
/// The C library parses and prints addresses (`inet_pton(3)`, `inet_ntop(3)`). It accepts IPv6 text in every
/// form of RFC 4291 and prints the form of RFC 5952.
public struct IPAddress: Hashable, Sendable, BitwiseCopyable {
  /// The version of IP.
  public enum Family: Hashable, Sendable, BitwiseCopyable {
    /// IPv4.
    case v4
    /// IPv6.
    case v6
  }

  /// The version of IP of the address.
  public let family: Family

  /// The first 8 bytes of an IPv6 address as a number, most significant byte first; 0 for IPv4.
  let high: UInt64
  /// The last 8 bytes of an IPv6 address as a number; the 32 bits of an IPv4 address.
  let low: UInt64

  /// Parses the text form of an address, without brackets. Returns `nil` if the text is not an address.
  public init?(_ text: some StringProtocol) {
    // inet_pton stops at a NUL and would ignore the text after it.
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

  /// Creates an IPv4 address from its 32 bits in host order: `0x7f000001` is 127.0.0.1.
  public init(v4 bits: UInt32) {
    family = .v4
    high = 0
    low = UInt64(bits)
  }

  /// Creates an IPv6 address from its 16 bytes in network order.
  ///
  /// - Precondition: there are exactly 16 bytes.
  public init(v6 bytes: some Collection<UInt8>) {
    precondition(bytes.count == 16, "an IPv6 address has 16 bytes, not \(bytes.count)")
    family = .v6
    high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    low = bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The bytes in network order: 4 for IPv4, 16 for IPv6.
  public var bytes: [UInt8] {
    switch family {
    case .v4: (0..<4).map { UInt8(truncatingIfNeeded: low >> (24 - 8 * $0)) }
    case .v6:
      (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> (56 - 8 * ($0 % 8))) }
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

  /// The text form for a URL: an IPv6 address has brackets (RFC 3986, section 3.2.2).
  public var hostText: String { family == .v4 ? description : "[\(description)]" }
}

extension IPAddress: Comparable {
  /// The total order of addresses: IPv4 before IPv6, then by value.
  public static func < (a: IPAddress, b: IPAddress) -> Bool {
    if a.family != b.family { return a.family == .v4 }
    return (a.high, a.low) < (b.high, b.low)
  }
}

/// An IP address with a TCP port: the target of a connection.
public struct IPEndpoint: Hashable, Sendable, CustomStringConvertible {
  /// The address.
  public var address: IPAddress
  /// The TCP port.
  public var port: UInt16

  /// Creates an endpoint.
  public init(_ address: IPAddress, port: UInt16) {
    self.address = address
    self.port = port
  }

  /// The text form: `192.0.2.1:443` or `[2001:db8::1]:443`.
  public var description: String { "\(address.hostText):\(port)" }
}
