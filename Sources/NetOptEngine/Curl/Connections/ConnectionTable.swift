import NetOptCore

/// The sockets that libcurl has open. libcurl itself keeps the pool of connections. The table keeps only the
/// state that decides whether a call waits for a race, and the readiness that the loop watches each socket
/// for. The table is up to date after a call into libcurl, not during the call.
struct ConnectionTable {
  /// A socket that libcurl has open.
  private final class Socket {
    /// The group of the exchange whose transfer opened the socket.
    let group: ConnectionGroup
    /// The endpoint that the socket connects to; `nil` for a proxy.
    let endpoint: IPEndpoint?
    /// Where the endpoint's address came from, for the leg that opened the socket.
    let source: AddressSource
    /// The identity of the transfer that opened the socket.
    let opener: ObjectIdentifier
    // Unchecked exclusivity: see CurlMulti.
    /// Whether the opener has reached the gate on this socket.
    @exclusivity(unchecked) var isReady = false
    /// The local port, set when `isReady` becomes true; 0 before.
    var localPort: Int32 = 0
    /// The calls that timed out on this connection.
    var stalls = Stalls()
    /// The readiness that the loop watches the socket for.
    @exclusivity(unchecked) var watched: Readiness = []
    /// Whether libcurl wants to be told of events on the socket. libcurl wants no events of idle connections,
    /// but the loop may keep watching such a socket (`setInterest`).
    @exclusivity(unchecked) var isWanted = false

    init(
      _ group: ConnectionGroup, _ endpoint: IPEndpoint?, _ source: AddressSource, openedBy transfer: Transfer
    ) {
      self.group = group
      self.endpoint = endpoint
      self.source = source
      opener = ObjectIdentifier(transfer)
    }
  }

  /// The table keeps groups without users until it has this many groups.
  private static let leastGroups = 1024

  /// The TLS settings of the client.
  private let tls: ClientTLS
  private var sockets = DescriptorTable<Socket>()
  private var groups: [ConnectionKey: ConnectionGroup] = [:]
  /// When the table has this many groups and needs one more, it drops the groups without users.
  private var mostGroups = leastGroups
  /// The bundles of each origin that has a group.
  private var bundles: [Origin: OriginBundles] = [:]
  /// The group that was last returned. A comparison finds it without hashing a key.
  private var last: ConnectionGroup?
  /// The plan of the last exchange for which `group(for:)` searched a group.
  private var lastPlan: RoutePlan?
  /// The value of `tls.generation` at that search.
  private var generation = 0
  /// For each endpoint, the number of its sockets that have not reached the gate; absent instead of 0.
  private var connecting: [IPEndpoint: Int] = [:]

  /// The number of open sockets.
  private(set) var count = 0
  private let counter: TransportCounter

  init(_ tls: ClientTLS, _ counter: TransportCounter) {
    self.tls = tls
    self.counter = counter
  }

  /// Returns the group whose connections an exchange may share.
  mutating func group(for exchange: Exchange) -> ConnectionGroup {
    // Consecutive exchanges nearly always have the same plan.
    if let last, let lastPlan, lastPlan.isIdentical(to: exchange.plan),
      last.key.suits(exchange.request.options), generation == tls.generation
    {
      return last
    }
    lastPlan = exchange.plan
    generation = tls.generation
    let origin = exchange.plan.origin
    let tls = tls.tls(for: origin.host)
    return group(ConnectionKey(origin, exchange.request.options, tls), tls)
  }

  /// Returns the group of a key, and creates the group if it is new.
  mutating func group(_ key: ConnectionKey, _ tls: HostTLS) -> ConnectionGroup {
    if let last, last.key == key { return last }
    if let known = groups[key] {
      last = known
      return known
    }
    if groups.count >= mostGroups { forgetUnused() }
    // Connections with other TLS settings are in other bundles.
    var bundles = self.bundles[key.origin] ?? OriginBundles(of: key.origin, tls)
    if bundles.tls !== tls { bundles = OriginBundles(of: key.origin, tls) }
    self.bundles[key.origin] = bundles
    let group = ConnectionGroup(key, bundles)
    groups[key] = group
    last = group
    return group
  }

  /// Drops the groups without users.
  ///
  /// The search for them visits all groups. It runs again when there are twice as many groups as it left, so
  /// that the searches together take linear time even while all groups have users.
  private mutating func forgetUnused() {
    groups = groups.filter { $0.value.users > 0 }
    mostGroups = max(Self.leastGroups, 2 * groups.count)
    let origins = Set(groups.keys.map(\.origin))
    bundles = bundles.filter { origins.contains($0.key) }
  }

  /// Removes and returns the exchanges of all groups that wait for a race.
  func takeWaiting() -> [Exchange] { groups.values.flatMap { $0.takeWaiting() } }

  /// Records that a transfer opened a socket.
  mutating func opened(_ descriptor: Int32, by transfer: Transfer) {
    closed(descriptor)
    let endpoint = transfer.endpoint
    let group = transfer.exchange.group ?? group(for: transfer.exchange)
    group.users += 1
    count += 1
    counter.opened()
    let source = transfer.exchange.race.legs[transfer.leg].source
    sockets[descriptor] = Socket(group, endpoint, source, openedBy: transfer)
    if let endpoint { connecting[endpoint, default: 0] += 1 }
  }

  /// Records that a transfer reached the gate. Changes nothing unless the transfer opened the socket itself.
  mutating func becameReady(_ descriptor: Int32, of transfer: Transfer) {
    guard let socket = sockets[descriptor], !socket.isReady, socket.opener == ObjectIdentifier(transfer)
    else { return }
    socket.isReady = true
    socket.localPort = transfer.localPort
    guard let endpoint = socket.endpoint else { return }
    connected(endpoint)
    socket.group.becameReady(descriptor, to: endpoint, from: socket.source)
  }

  /// Records that libcurl closed a socket.
  mutating func closed(_ descriptor: Int32) {
    guard let socket = sockets[descriptor] else { return }
    sockets[descriptor] = nil
    count -= 1
    counter.closed()
    socket.group.users -= 1
    socket.group.closed(descriptor)
    if let endpoint = socket.endpoint, !socket.isReady { connected(endpoint) }
  }

  /// Records the end of a transfer. libcurl closes sockets that are still connecting without a report, so this
  /// method removes those that the transfer opened. There are several if a proxy has several addresses.
  mutating func ended(_ transfer: Transfer) {
    guard let last = transfer.descriptor else { return }
    let descriptors = transfer.hasSeveralSockets ? sockets.descriptors : [last]
    for descriptor in descriptors {
      if let socket = sockets[descriptor], !socket.isReady, socket.opener == ObjectIdentifier(transfer) {
        closed(descriptor)
      }
    }
  }

  /// Removes all sockets. libcurl has closed them, some of them without a report.
  mutating func closeAll() { for descriptor in sockets.descriptors { closed(descriptor) } }

  /// Returns the socket of the connection on which a transfer reached the gate: the socket that the transfer
  /// opened, or the socket of a pooled connection. `nil` for a pooled connection to a proxy.
  func socket(of transfer: Transfer) -> Int32? {
    if let own = transfer.descriptor, sockets[own]?.opener == ObjectIdentifier(transfer) { return own }
    guard let endpoint = transfer.endpoint, let group = transfer.exchange.group else { return nil }
    return group.sockets(to: endpoint).first { sockets[$0]?.localPort == transfer.localPort }
  }

  /// Records that a call timed out after its request was sent.
  ///
  /// - Parameters:
  ///   - sent: when the request was sent.
  ///   - lastByte: when the last byte arrived on the connection.
  /// - Returns: whether this is the second such call in a row, so that the connection counts as dead
  ///   (`Stalls`).
  mutating func stalled(
    _ descriptor: Int32, sent: MonotonicInstant, lastByte: MonotonicInstant, at now: MonotonicInstant
  ) -> Bool {
    sockets[descriptor]?.stalls.record(sent: sent, lastByte: lastByte, at: now) ?? false
  }

  /// Whether a socket that this transfer opened is still connecting: libcurl waits only for it to become
  /// writable.
  func isConnecting(_ descriptor: Int32, by transfer: Transfer) -> Bool {
    guard let socket = sockets[descriptor] else { return false }
    return socket.opener == ObjectIdentifier(transfer) && !socket.isReady && socket.isWanted
      && socket.watched == .write
  }

  /// Whether connections to an endpoint are being opened, and the group has no ready connection to the
  /// endpoint. A new transfer may then wait for one of these connections and open no socket.
  func isOnlyConnecting(_ endpoint: IPEndpoint, _ group: ConnectionGroup?) -> Bool {
    !connecting.isEmpty && connecting[endpoint] != nil && group?.isReady(endpoint) != true
  }

  /// Subtracts a socket from `connecting`, because it has reached the gate or was closed.
  private mutating func connected(_ endpoint: IPEndpoint) {
    guard let count = connecting[endpoint] else { return }
    connecting[endpoint] = count > 1 ? count - 1 : nil
  }

  // MARK: Watching

  /// What the loop must do when libcurl's interest in a socket changes.
  enum Watching: Equatable {
    /// Watch the socket for this readiness from now on.
    case watch(Readiness)
    /// Stop watching the socket.
    case unwatch
    /// Do nothing: the loop already watches the socket as it should.
    case unchanged
  }

  /// Records a change of libcurl's interest in a socket.
  ///
  /// The loop keeps watching the socket of a connection that becomes idle. Otherwise each request would cost
  /// two system calls, to watch the socket and to unwatch it. libcurl may close a connecting socket without a
  /// report, and the descriptor may then be the number of another socket. So for a socket that has not
  /// reached the gate, the result is never `unchanged`.
  mutating func setInterest(_ descriptor: Int32, _ readiness: Readiness) -> Watching {
    if let socket = sockets[descriptor] {
      socket.isWanted = !readiness.isEmpty
      if socket.isReady, readiness.isEmpty || socket.watched == readiness { return .unchanged }
      socket.watched = readiness
    }
    return readiness.isEmpty ? .unwatch : .watch(readiness)
  }

  /// Whether to tell libcurl of an event on a socket. Records that the loop no longer watches the socket if
  /// the result is false.
  ///
  /// - Returns: false if the connection is idle. The caller must then unwatch the socket. Such an event
  ///   usually means that the peer closed the connection. libcurl finds this out before it uses the
  ///   connection again.
  mutating func isWanted(_ descriptor: Int32) -> Bool {
    guard let socket = sockets[descriptor], !socket.isWanted else { return true }
    socket.watched = []
    return false
  }
}
