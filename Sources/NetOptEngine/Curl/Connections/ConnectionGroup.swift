import NetOptCore

/// The properties in which two requests must agree to share a connection. libcurl's pool compares further
/// properties.
struct ConnectionKey: Hashable {
  let origin: Origin
  let routing: RequestOptions.Routing
  let verification: RequestOptions.Verification
  let version: RequestOptions.Version
  let family: IPAddress.Family?
  let directDespiteProxy: Bool

  init(_ origin: Origin, _ options: RequestOptions) {
    self.origin = origin
    routing = options.routing
    verification = options.verification
    version = options.version
    family = options.family
    directDespiteProxy = options.directDespiteProxy
  }

  /// Whether a request with these options to the same origin has the same key.
  func suits(_ options: RequestOptions) -> Bool {
    routing == options.routing && verification == options.verification && version == options.version
      && family == options.family && directDespiteProxy == options.directDespiteProxy
  }
}

/// The connections that requests with one key share, and the exchanges that wait for a connection. Confined
/// to the loop's thread.
///
/// While one exchange runs a race and no connection is ready, later exchanges wait for its outcome instead of
/// running races of their own.
final class ConnectionGroup {
  let key: ConnectionKey
  /// The bundles of the key's origin.
  let bundles: OriginBundles
  /// The sockets that have reached the gate, busy or idle.
  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private var ready:
    [(descriptor: Int32, endpoint: IPEndpoint, source: AddressSource)] = []
  @exclusivity(unchecked) private var racer: Exchange?
  @exclusivity(unchecked) private var waiting: [Exchange] = []
  /// The TLS sessions of the group's connections.
  private(set) lazy var sessions = SessionCache()
  /// The number of exchanges and sockets that use the group.
  @exclusivity(unchecked) var users = 0

  init(_ key: ConnectionKey, _ bundles: OriginBundles) {
    self.key = key
    self.bundles = bundles
  }

  // MARK: Connections

  /// Whether a connection is ready.
  var isReady: Bool { !ready.isEmpty }

  /// Records that a connection has reached the gate.
  ///
  /// - Parameter source: where the endpoint's address came from.
  func becameReady(_ descriptor: Int32, to endpoint: IPEndpoint, from source: AddressSource) {
    ready.append((descriptor, endpoint, source))
  }

  func closed(_ descriptor: Int32) { ready.removeAll { $0.descriptor == descriptor } }

  /// Whether a connection to the endpoint is ready.
  func isReady(_ endpoint: IPEndpoint) -> Bool { ready.contains { $0.endpoint == endpoint } }

  /// Returns the endpoint with the most ready connections among the endpoints whose address came from DNS.
  /// With equal counts, the lowest address wins.
  ///
  /// For plans whose first leg is DNS. Such a plan tries no endpoint of the IP list first: the endpoints are
  /// excluded, the attempt avoids them, or the list does not contain them. So this method ignores a ready
  /// connection to an endpoint whose address came from the list.
  ///
  /// - Parameter avoidance: the addresses to skip.
  func readyDNSEndpoint(avoiding avoidance: RoutePlan.Avoidance? = nil) -> IPEndpoint? {
    let connections = ready.filter {
      $0.source == .dns && avoidance?.addresses.contains($0.endpoint.address) != true
    }
    return connections.map { connection in
      (connection.endpoint, connections.count { $0.endpoint == connection.endpoint })
    }
    .max { ($0.1, $1.0.address) < ($1.1, $0.0.address) }?.0
  }

  /// Returns the descriptors of the ready connections to an endpoint.
  func sockets(to endpoint: IPEndpoint) -> [Int32] {
    ready.filter { $0.endpoint == endpoint }.map(\.descriptor)
  }

  /// Returns the only ready connection to an endpoint; `nil` if there are several or none.
  func onlySocket(to endpoint: IPEndpoint) -> Int32? {
    var found: Int32?
    for (descriptor, candidate, _) in ready where candidate == endpoint {
      if found != nil { return nil }
      found = descriptor
    }
    return found
  }

  // MARK: The race

  /// Whether the exchange may race now. If not, the exchange waits until `release`.
  func admit(_ exchange: Exchange) -> Bool {
    guard racer == nil else {
      waiting.append(exchange)
      return false
    }
    racer = exchange
    return true
  }

  /// Removes and returns the waiting exchanges. They do not learn the outcome of the race.
  func takeWaiting() -> [Exchange] {
    defer { waiting = [] }
    return waiting
  }

  /// Ends the race of an exchange, because the race or the whole exchange is over.
  ///
  /// - Returns: the exchanges that waited for the race; none if the exchange was not racing.
  func release(_ exchange: Exchange) -> [Exchange] {
    guard racer === exchange else { return [] }
    racer = nil
    defer { waiting = [] }
    return waiting
  }
}
