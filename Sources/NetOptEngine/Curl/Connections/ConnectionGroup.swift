import NetOptCore

/// What makes two requests able to share a connection, as far as it is decided here.
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

  /// Whether the options of a request to the same origin make the same key.
  func suits(_ options: RequestOptions) -> Bool {
    routing == options.routing && verification == options.verification && version == options.version
      && family == options.family && directDespiteProxy == options.directDespiteProxy
  }
}

/// The connections that requests of one key share, and those who wait for one. Confined to the loop.
///
/// Calls that arrive while a race is under way and nothing is ready wait for its outcome instead of each running one.
final class ConnectionGroup {
  let key: ConnectionKey
  /// The bundles of the key's origin.
  let bundles: OriginBundles
  /// The sockets that have come to the gate, in use or not.
  // Unchecked exclusivity: see CurlMulti.
  @exclusivity(unchecked) private var ready:
    [(descriptor: Int32, endpoint: IPEndpoint, source: AddressSource)] = []
  @exclusivity(unchecked) private var racer: Exchange?
  @exclusivity(unchecked) private var waiting: [Exchange] = []
  /// The TLS sessions of its connections.
  private(set) lazy var sessions = SessionCache()
  /// How many exchanges and sockets have to do with the group.
  @exclusivity(unchecked) var users = 0

  init(_ key: ConnectionKey, _ bundles: OriginBundles) {
    self.key = key
    self.bundles = bundles
  }

  // MARK: Connections

  /// Whether there is a connection that is ready.
  var isReady: Bool { !ready.isEmpty }

  /// - Parameter source: where the endpoint's address came from.
  func becameReady(_ descriptor: Int32, to endpoint: IPEndpoint, from source: AddressSource) {
    ready.append((descriptor, endpoint, source))
  }

  func closed(_ descriptor: Int32) { ready.removeAll { $0.descriptor == descriptor } }

  /// Whether an endpoint has a connection that is ready.
  func isReady(_ endpoint: IPEndpoint) -> Bool { ready.contains { $0.endpoint == endpoint } }

  /// The endpoint with the most connections that are ready and that DNS gave the address of; of several the lowest address.
  /// A plan that begins with DNS has no endpoint of the list in it: one that was left out of it, or is no longer listed,
  /// must not come back by way of its connections.
  ///
  /// - Parameter avoidance: which are not asked for.
  func readyAnswer(avoiding avoidance: RoutePlan.Avoidance? = nil) -> IPEndpoint? {
    let answers = ready.filter {
      $0.source == .dns && avoidance?.addresses.contains($0.endpoint.address) != true
    }
    return answers.map { answer in
      (answer.endpoint, answers.count { $0.endpoint == answer.endpoint })
    }
    .max { ($0.1, $1.0.address) < ($1.1, $0.0.address) }?.0
  }

  /// The connections to an endpoint that are ready.
  func sockets(to endpoint: IPEndpoint) -> [Int32] {
    ready.filter { $0.endpoint == endpoint }.map(\.descriptor)
  }

  /// The one connection to an endpoint that is ready; `nil` when there are more, or none.
  func onlySocket(to endpoint: IPEndpoint) -> Int32? {
    var found: Int32?
    for (descriptor, candidate, _) in ready where candidate == endpoint {
      if found != nil { return nil }
      found = descriptor
    }
    return found
  }

  // MARK: The race

  /// Whether the exchange may race now; otherwise it is kept until `release`.
  func admit(_ exchange: Exchange) -> Bool {
    guard racer == nil else {
      waiting.append(exchange)
      return false
    }
    racer = exchange
    return true
  }

  /// Takes out those who wait, who will not hear of the race's outcome.
  func takeWaiting() -> [Exchange] {
    defer { waiting = [] }
    return waiting
  }

  /// The exchange's race is over, or the exchange is.
  ///
  /// - Returns: those who waited for it.
  func release(_ exchange: Exchange) -> [Exchange] {
    guard racer === exchange else { return [] }
    racer = nil
    defer { waiting = [] }
    return waiting
  }
}
