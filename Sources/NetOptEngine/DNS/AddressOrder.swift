import NetOptCore

/// The order in which the addresses of a name are tried (RFC 8305, section 4).
enum AddressOrder {
  /// Sorts addresses; those of one family keep their order.
  ///
  /// When both families can be reached, or neither, they alternate, IPv6 first. When one of them cannot, its
  /// addresses come last: most hosts without IPv6 would otherwise begin each race with a leg that fails, or, behind
  /// a private IPv6 network without a way out, with one that is waited for.
  ///
  /// - Parameter isReachable: whether this host has a source address for a destination. Asked for the first address
  ///   of each family, when there are both.
  static func sorted(_ addresses: [IPAddress], isReachable: (IPAddress) -> Bool) -> [IPAddress] {
    let v6 = addresses.filter { $0.family == .v6 }
    let v4 = addresses.filter { $0.family == .v4 }
    guard let firstV6 = v6.first, let firstV4 = v4.first else { return addresses }
    switch (isReachable(firstV6), isReachable(firstV4)) {
    case (true, false): return v6 + v4
    case (false, true): return v4 + v6
    default: return alternating(v6, v4)
    }
  }

  private static func alternating(_ a: [IPAddress], _ b: [IPAddress]) -> [IPAddress] {
    let shared = min(a.count, b.count)
    return (0..<shared).flatMap { [a[$0], b[$0]] } + a[shared...] + b[shared...]
  }
}
