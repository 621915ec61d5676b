import NetOptCore

/// The sockets that libcurl has open. libcurl keeps the pool. The table keeps only the state that decides
/// whether a call waits for a race, and the readiness that the loop watches for.
struct ConnectionTable {
  private final class Socket {
    let group: ConnectionGroup
    let endpoint: IPEndpoint?
    /// Where the endpoint's address came from, for the leg that opened the socket.
    let source: AddressSource
    let opener: ObjectIdentifier
    // Unchecked exclusivity: see CurlMulti.
    @exclusivity(unchecked) var isReady = false
    /// The local port, set when the socket reaches the gate.
    var localPort: Int32 = 0
    var stalls = Stalls()
    /// The readiness that the loop watches the socket for.
    @exclusivity(unchecked) var watched: Readiness = []
    /// Whether libcurl wants to hear about events on the socket.
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

  /// The number of groups from which on the table drops unused groups.
  private static let mostGroups = 1024

  private var sockets = DescriptorTable<Socket>()
  private var groups: [ConnectionKey: ConnectionGroup] = [:]
  /// When the table last searched for unused groups. A search walks all groups. If all groups are in use, a
  /// search for each new group would take quadratic time.
  private var lastLook = MonotonicInstant(nanoseconds: .min)
  private var bundles: [Origin: OriginBundles] = [:]
  /// The group that was requested last, found without hashing.
  private var last: ConnectionGroup?
  private var lastPlan: RoutePlan?
  private var connecting: [IPEndpoint: Int] = [:]

  private(set) var count = 0

  /// Returns the group whose connections an exchange may share.
  mutating func group(for exchange: Exchange) -> ConnectionGroup {
    // Consecutive exchanges nearly always have the same plan.
    if let last, let lastPlan, lastPlan.isIdentical(to: exchange.plan),
      last.key.suits(exchange.request.options)
    {
      return last
    }
    lastPlan = exchange.plan
    return group(ConnectionKey(exchange.plan.origin, exchange.request.options))
  }

  /// Returns the group of a key, and creates the group if it is new.
  mutating func group(_ key: ConnectionKey) -> ConnectionGroup {
    if let last, last.key == key { return last }
    if let known = groups[key] {
      last = known
      return known
    }
    if groups.count >= Self.mostGroups { forgetUnused() }
    let bundles = self.bundles[key.origin] ?? OriginBundles(of: key.origin)
    self.bundles[key.origin] = bundles
    let group = ConnectionGroup(key, bundles)
    groups[key] = group
    last = group
    return group
  }

  private mutating func forgetUnused() {
    let now = SystemTimeSource().now()
    guard now >= lastLook + .milliseconds(100) else { return }
    lastLook = now
    groups = groups.filter { $0.value.users > 0 }
    let origins = Set(groups.keys.map(\.origin))
    bundles = bundles.filter { origins.contains($0.key) }
  }

  /// Removes and returns the exchanges of all groups that wait for a race.
  func takeWaiting() -> [Exchange] { groups.values.flatMap { $0.takeWaiting() } }

  mutating func opened(_ descriptor: Int32, by transfer: Transfer) {
    closed(descriptor)
    let endpoint = transfer.endpoint
    let group = transfer.exchange.group ?? group(for: transfer.exchange)
    group.users += 1
    count += 1
    let source = transfer.exchange.race.legs[transfer.leg].source
    sockets[descriptor] = Socket(group, endpoint, source, openedBy: transfer)
    if let endpoint { connecting[endpoint, default: 0] += 1 }
  }

  mutating func becameReady(_ descriptor: Int32, of transfer: Transfer) {
    guard let socket = sockets[descriptor], !socket.isReady, socket.opener == ObjectIdentifier(transfer)
    else { return }
    socket.isReady = true
    socket.localPort = transfer.localPort
    guard let endpoint = socket.endpoint else { return }
    connected(endpoint)
    socket.group.becameReady(descriptor, to: endpoint, from: socket.source)
  }

  mutating func closed(_ descriptor: Int32) {
    guard let socket = sockets[descriptor] else { return }
    sockets[descriptor] = nil
    count -= 1
    socket.group.users -= 1
    socket.group.closed(descriptor)
    if let endpoint = socket.endpoint, !socket.isReady { connected(endpoint) }
  }

  /// Records the end of a transfer. If the transfer's socket is still connecting, libcurl closes the socket
  /// with the transfer and does not report this.
  mutating func ended(_ transfer: Transfer) {
    guard let descriptor = transfer.descriptor, let socket = sockets[descriptor], !socket.isReady,
      socket.opener == ObjectIdentifier(transfer)
    else { return }
    closed(descriptor)
  }

  /// Returns the socket that carries a transfer at the gate: the socket that the transfer opened, or one from
  /// the pool. `nil` for a pooled connection to a proxy.
  func socket(of transfer: Transfer) -> Int32? {
    if let own = transfer.descriptor, sockets[own]?.opener == ObjectIdentifier(transfer) { return own }
    guard let endpoint = transfer.endpoint, let group = transfer.exchange.group else { return nil }
    return group.sockets(to: endpoint).first { sockets[$0]?.localPort == transfer.localPort }
  }

  /// Records that a call timed out on a connection: see `Stalls`.
  mutating func stalled(
    _ descriptor: Int32, sent: MonotonicInstant, lastByte: MonotonicInstant, at now: MonotonicInstant
  ) -> Bool {
    sockets[descriptor]?.stalls.noted(sent: sent, lastByte: lastByte, at: now) ?? false
  }

  /// Whether the transfer that opened the socket still owns it, and libcurl still waits for TCP to connect.
  func isConnecting(_ descriptor: Int32, by transfer: Transfer) -> Bool {
    guard let socket = sockets[descriptor] else { return false }
    return socket.opener == ObjectIdentifier(transfer) && !socket.isReady && socket.isWanted
      && socket.watched == .write
  }

  /// Whether connections to an endpoint are being opened and none is ready.
  func isOnlyConnecting(_ endpoint: IPEndpoint, _ group: ConnectionGroup?) -> Bool {
    !connecting.isEmpty && connecting[endpoint] != nil && group?.isReady(endpoint) != true
  }

  private mutating func connected(_ endpoint: IPEndpoint) {
    guard let count = connecting[endpoint] else { return }
    connecting[endpoint] = count > 1 ? count - 1 : nil
  }

  // MARK: Watching

  /// What the loop must do when libcurl's interest in a socket changes.
  enum Watching: Equatable {
    case watch(Readiness)
    case unwatch
    /// The loop already watches the socket as it should.
    case unchanged
  }

  /// Records a change of libcurl's interest in a socket.
  ///
  /// The loop keeps watching a connection that becomes idle. Otherwise each request would cost two system
  /// calls, to watch the socket again and to unwatch it. libcurl may close a connecting socket without
  /// reporting this, and the same descriptor may then be another socket. The loop therefore watches a
  /// connecting socket anew on each change.
  mutating func setInterest(_ descriptor: Int32, _ readiness: Readiness) -> Watching {
    if let socket = sockets[descriptor] {
      socket.isWanted = !readiness.isEmpty
      if socket.isReady, readiness.isEmpty || socket.watched == readiness { return .unchanged }
      socket.watched = readiness
    }
    return readiness.isEmpty ? .unwatch : .watch(readiness)
  }

  /// Whether libcurl wants to hear about an event on a socket.
  ///
  /// - Returns: `false` if the loop must unwatch the socket. In this case the other side has closed an idle
  ///   connection, and libcurl notices that when it next wants to use the connection.
  mutating func isWanted(_ descriptor: Int32) -> Bool {
    guard let socket = sockets[descriptor], !socket.isWanted else { return true }
    socket.watched = []
    return false
  }
}
