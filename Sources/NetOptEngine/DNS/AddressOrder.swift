import NetOptCore

/// The order in which a race tries the addresses of a name (RFC 8305, section 4).
enum AddressOrder {
  /// Sorts addresses. Addresses of the same family keep their order.
  ///
  /// If this host can reach both families, or neither, the families alternate, IPv6 first. If it can reach
  /// only one family, the addresses of the other family come last. Without this rule, most hosts without IPv6
  /// would start each race with a leg that fails. A host in a private IPv6 network without a route to the
  /// Internet would start each race with a leg that gets no answer.
  ///
  /// - Parameter isReachable: whether this host has a source address for a destination
  ///   (`SourceAddress.fits`). Called with the first address of each family if both families are present.
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

  /// Returns `a[0]`, `b[0]`, `a[1]`, `b[1]` and so on, and then the rest of the longer array.
  private static func alternating(_ a: [IPAddress], _ b: [IPAddress]) -> [IPAddress] {
    let shared = min(a.count, b.count)
    return (0..<shared).flatMap { [a[$0], b[$0]] } + a[shared...] + b[shared...]
  }
}
