import CAres
import NetOptCore
import NetOptNetwork

/// What c-ares found for a name, as values (ares_getaddrinfo(3)).
struct AresAnswer: Equatable {
  /// The addresses in the order in which they came, each once.
  var addresses: [IPAddress] = []
  /// The shortest time to live on the way to them, aliases included; zero for what a hosts file says.
  var timeToLive = Duration.seconds(Int32.max)

  init() {}

  /// Reads a result, which stays the caller's.
  init(_ result: ares_addrinfo) {
    var node = result.nodes
    while let current = node?.pointee {
      timeToLive = min(timeToLive, .seconds(max(0, current.ai_ttl)))
      if let address = IPAddress(socketAddress: current.ai_addr), !addresses.contains(address) {
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
