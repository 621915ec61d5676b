import NetOptCore

/// The properties in which two requests must agree to share a connection. libcurl's pool compares further
/// properties.
struct ConnectionKey: Hashable {
  let origin: Origin
  let routing: RequestOptions.Routing
  let verification: RequestOptions.Verification
  let version: RequestOptions.Version
  /// The address family that the requests may use; `nil` for both families.
  let family: IPAddress.Family?
  /// Whether the requests go to servers directly although a proxy is configured.
  let directDespiteProxy: Bool
  /// The identity of the TLS settings. The bundles of the group keep the object alive.
  let tls: ObjectIdentifier

  init(_ origin: Origin, _ options: RequestOptions, _ tls: HostTLS) {
    self.origin = origin
    self.tls = ObjectIdentifier(tls)
    routing = options.routing
    verification = options.verification
    version = options.version
    family = options.family
    directDespiteProxy = options.directDespiteProxy
  }

  /// Whether a request with these options to `origin` has this key. The caller must know that the request
  /// goes to `origin`.
  func suits(_ options: RequestOptions) -> Bool {
    routing == options.routing && verification == options.verification && version == options.version
      && family == options.family && directDespiteProxy == options.directDespiteProxy
  }
}

/// The connections that requests with one key share, and the exchanges that wait until a race has opened such
/// a connection.
/// Confined to the loop's thread.
///
/// While one exchange runs a race and no connection is ready, later exchanges wait until that race ends. They
/// run no race meanwhile.
final class ConnectionGroup {
  let key: ConnectionKey
  /// The bundles of libcurl's pool for the key's origin. All groups of the origin share them.
  let bundles: OriginBundles
  /// The open connections on which a transfer has reached the gate, whether they carry requests now or not.
  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private var ready:
    [(descriptor: Int32, endpoint: IPEndpoint, source: AddressSource)] = []
  /// The exchange that began to race when no connection was ready, until its race ends. The exchanges in
  /// `waiting` wait for this race. `nil` if there is no such race.
  @exclusivity(unchecked) private var racer: Exchange?
  /// The exchanges that wait for the race of `racer`, in the order in which they came.
  @exclusivity(unchecked) private var waiting: [Exchange] = []
  /// The TLS sessions that new connections of the group may resume.
  private(set) lazy var sessions = SessionCache()
  /// The number of exchanges and open sockets that use the group. A group without users may be dropped.
  @exclusivity(unchecked) var users = 0

  init(_ key: ConnectionKey, _ bundles: OriginBundles) {
    self.key = key
    self.bundles = bundles
  }

  // MARK: Connections

  /// Whether a connection is ready.
  var isReady: Bool { !ready.isEmpty }

  /// Records that a transfer reached the gate on a new connection.
  ///
  /// - Parameter source: where the endpoint's address came from.
  func becameReady(_ descriptor: Int32, to endpoint: IPEndpoint, from source: AddressSource) {
    ready.append((descriptor, endpoint, source))
  }

  /// Forgets the connection of a socket that libcurl closes.
  func closed(_ descriptor: Int32) { ready.removeAll { $0.descriptor == descriptor } }

  /// Whether a connection to the endpoint is ready.
  func isReady(_ endpoint: IPEndpoint) -> Bool { ready.contains { $0.endpoint == endpoint } }

  /// Returns the endpoint with the most ready connections among the endpoints whose address came from DNS; of
  /// several such endpoints, the one with the lowest address.
  ///
  /// For plans whose first leg is DNS. Such a plan tries no endpoint of the IP list first: the list is not
  /// used for the request, the endpoints are excluded, or the attempt avoids them. So this method ignores a
  /// ready connection to an endpoint whose address came from the list.
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

  /// Makes an exchange the racer if no other exchange races. Otherwise the exchange waits until `release` or
  /// `takeWaiting` returns it.
  ///
  /// - Returns: whether the exchange may race now.
  func admit(_ exchange: Exchange) -> Bool {
    guard racer == nil else {
      waiting.append(exchange)
      return false
    }
    racer = exchange
    return true
  }

  /// Removes and returns the waiting exchanges. They no longer wait for the race of `racer`, which goes on.
  func takeWaiting() -> [Exchange] {
    defer { waiting = [] }
    return waiting
  }

  /// Records that the race of an exchange, or the exchange itself, has ended. If the exchange is the racer,
  /// the group has no racer from now on.
  ///
  /// - Returns: the exchanges that waited for the race; none if the exchange is not the racer.
  func release(_ exchange: Exchange) -> [Exchange] {
    guard racer === exchange else { return [] }
    racer = nil
    defer { waiting = [] }
    return waiting
  }
}
