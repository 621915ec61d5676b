import CAres
import NetOptCore

/// The addresses that c-ares found for a name, as Swift values (ares_getaddrinfo(3)).
struct AresAnswer: Equatable {
  /// The most addresses that a race gets for a name. An answer over TCP can have 4,000 addresses, but a race
  /// that starts a leg every 250 ms needs 32 s to try 128 of them. At 24 bytes per address, the 10,000 names
  /// of the cache take at most 31 MB.
  static let mostAddresses = 128

  /// The addresses in the order of the answer, without duplicates. Holds the first `mostAddresses` of each
  /// family. `AresChannel` sorts them later with `AddressOrder`, and then keeps the first `mostAddresses`.
  var addresses: [IPAddress] = []
  /// The shortest time to live among the addresses and the aliases (CNAME records) that lead to them. Zero
  /// for addresses from a hosts file.
  var timeToLive = Duration.seconds(Int32.max)

  init() {}

  /// Copies the addresses from a result of c-ares. The caller still owns the result and must free it.
  init(_ result: ares_addrinfo) {
    var node = result.nodes
    var counts: [IPAddress.Family: Int] = [:]
    while let current = node?.pointee {
      timeToLive = min(timeToLive, .seconds(max(0, current.ai_ttl)))
      if let address = IPAddress(socketAddress: current.ai_addr),
        counts[address.family, default: 0] < Self.mostAddresses, !addresses.contains(address)
      {
        counts[address.family, default: 0] += 1
        addresses.append(address)
      }
      node = current.ai_next
    }
    var alias = result.cnames
    while let current = alias?.pointee {
      timeToLive = min(timeToLive, .seconds(max(0, current.ttl)))
      alias = current.next
    }
  }
}
