import CAres
import NetOptCore

/// What c-ares found for a name, as values (ares_getaddrinfo(3)).
struct AresAnswer: Equatable {
  /// The most addresses of a name that are kept and tried. An answer over TCP can have 4,000. A race that starts a leg every 250 ms
  /// needs 32 s to try 128. With 24 bytes each, the 10,000 names of the cache have 31 MB at most.
  static let mostAddresses = 128

  /// The addresses in the order in which they came, each once. Of each family the first `mostAddresses`: `AddressOrder` decides
  /// which family comes first, and the rest is cut then.
  var addresses: [IPAddress] = []
  /// The shortest time to live on the way to them, aliases included; zero for what a hosts file says.
  var timeToLive = Duration.seconds(Int32.max)

  init() {}

  /// Reads a result, which stays the caller's.
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
