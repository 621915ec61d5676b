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
}

/// The sockets that libcurl has open, and which of them have come to the gate. libcurl keeps the pool; this only
/// knows of it what decides whether a call has to wait for a race.
struct ConnectionTable {
  private struct Socket {
    let key: ConnectionKey
    let endpoint: Endpoint?
    let opener: ObjectIdentifier
    var isReady = false
  }

  private var sockets: [Int32: Socket] = [:]
  private var ready: [ConnectionKey: [Endpoint: Int]] = [:]
  private var connecting: [Endpoint: Int] = [:]

  var count: Int { sockets.count }

  mutating func opened(_ descriptor: Int32, by transfer: Transfer) {
    closed(descriptor)
    let endpoint = transfer.endpoint
    sockets[descriptor] = Socket(
      key: transfer.exchange.key, endpoint: endpoint, opener: ObjectIdentifier(transfer))
    if let endpoint { connecting[endpoint, default: 0] += 1 }
  }

  mutating func becameReady(_ descriptor: Int32, of transfer: Transfer) {
    guard let socket = sockets[descriptor], !socket.isReady, socket.opener == ObjectIdentifier(transfer)
    else {
      return
    }
    sockets[descriptor]?.isReady = true
    guard let endpoint = socket.endpoint else { return }
    lower(&connecting, endpoint)
    ready[socket.key, default: [:]][endpoint, default: 0] += 1
  }

  mutating func closed(_ descriptor: Int32) {
    guard let socket = sockets.removeValue(forKey: descriptor), let endpoint = socket.endpoint else { return }
    guard socket.isReady else {
      lower(&connecting, endpoint)
      return
    }
    lower(&ready[socket.key, default: [:]], endpoint)
    if ready[socket.key]?.isEmpty == true { ready[socket.key] = nil }
  }

  /// A transfer ends. A socket that it was still connecting is closed with it, of which libcurl does not tell.
  mutating func ended(_ transfer: Transfer) {
    guard let descriptor = transfer.descriptor, let socket = sockets[descriptor], !socket.isReady,
      socket.opener == ObjectIdentifier(transfer)
    else { return }
    closed(descriptor)
  }

  /// Whether there is a connection that is ready, in use or not.
  func isReady(_ key: ConnectionKey) -> Bool { ready[key] != nil }

  /// An endpoint that has a connection that is ready.
  func readyEndpoint(_ key: ConnectionKey) -> Endpoint? {
    ready[key]?.max { ($0.value, $1.key.address) < ($1.value, $0.key.address) }?.key
  }

  /// Whether connections to an endpoint are being opened, and none is ready.
  func isOnlyConnecting(_ endpoint: Endpoint, _ key: ConnectionKey) -> Bool {
    connecting[endpoint] != nil && ready[key]?[endpoint] == nil
  }

  private func lower(_ counts: inout [Endpoint: Int], _ endpoint: Endpoint) {
    guard let count = counts[endpoint] else { return }
    counts[endpoint] = count > 1 ? count - 1 : nil
  }
}

/// Calls that arrive while a race for the same connection is under way wait for its outcome instead of each running
/// one.
struct Admission {
  private struct Entry {
    var racer: Exchange
    var waiting: [Exchange] = []
  }

  private var entries: [ConnectionKey: Entry] = [:]

  /// Whether the exchange may race now; otherwise it is kept until `release`.
  mutating func admit(_ exchange: Exchange) -> Bool {
    guard entries[exchange.key] == nil else {
      entries[exchange.key]?.waiting.append(exchange)
      return false
    }
    entries[exchange.key] = Entry(racer: exchange)
    return true
  }

  /// The exchange's race is over, or the exchange is.
  ///
  /// - Returns: those who waited for it.
  mutating func release(_ exchange: Exchange) -> [Exchange] {
    guard let entry = entries[exchange.key], entry.racer === exchange else { return [] }
    entries[exchange.key] = nil
    return entry.waiting
  }
}
