import NetOptCore

/// The sockets that libcurl has open, and what is known of them. libcurl keeps the pool; this only knows of it what
/// decides whether a call has to wait for a race, and what the loop watches.
struct ConnectionTable {
  private final class Socket {
    let group: ConnectionGroup
    let endpoint: IPEndpoint?
    /// Where the endpoint's address came from for the leg that opened it.
    let source: AddressSource
    let opener: ObjectIdentifier
    // Unchecked exclusivity: see CurlMulti.
    @exclusivity(unchecked) var isReady = false
    /// The port on this side, once it is ready.
    var localPort: Int32 = 0
    var stalls = Stalls()
    /// What the loop watches it for.
    @exclusivity(unchecked) var watched: Readiness = []
    /// Whether libcurl wants to know.
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

  /// From so many groups on those that nobody uses are forgotten.
  private static let mostGroups = 1024

  private var sockets = DescriptorTable<Socket>()
  private var groups: [ConnectionKey: ConnectionGroup] = [:]
  /// When unused groups were last looked for. A look walks all groups. Where all are in use, a look for each new group would take quadratic time.
  private var lastLook = MonotonicInstant(nanoseconds: .min)
  private var bundles: [Origin: OriginBundles] = [:]
  /// The group that was asked for last, found without hashing.
  private var last: ConnectionGroup?
  private var lastPlan: RoutePlan?
  private var connecting: [IPEndpoint: Int] = [:]

  private(set) var count = 0

  /// The group whose connections an exchange may share.
  mutating func group(for exchange: Exchange) -> ConnectionGroup {
    // The plan that was given out last is nearly always the one before.
    if let last, let lastPlan, lastPlan.isIdentical(to: exchange.plan),
      last.key.suits(exchange.request.options)
    {
      return last
    }
    lastPlan = exchange.plan
    return group(ConnectionKey(exchange.plan.origin, exchange.request.options))
  }

  /// The group of a key.
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

  /// Takes out those who wait for a race, of whatever group.
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

  /// A transfer ends. A socket that it was still connecting is closed with it, of which libcurl does not tell.
  mutating func ended(_ transfer: Transfer) {
    guard let descriptor = transfer.descriptor, let socket = sockets[descriptor], !socket.isReady,
      socket.opener == ObjectIdentifier(transfer)
    else { return }
    closed(descriptor)
  }

  /// The socket that carries a transfer which came to the gate, be it its own or one of the pool; `nil` for a proxy's.
  func socket(of transfer: Transfer) -> Int32? {
    if let own = transfer.descriptor, sockets[own]?.opener == ObjectIdentifier(transfer) { return own }
    guard let endpoint = transfer.endpoint, let group = transfer.exchange.group else { return nil }
    return group.sockets(to: endpoint).first { sockets[$0]?.localPort == transfer.localPort }
  }

  /// A call timed out on a connection: see `Stalls`.
  mutating func stalled(
    _ descriptor: Int32, sent: MonotonicInstant, lastByte: MonotonicInstant, at now: MonotonicInstant
  ) -> Bool {
    sockets[descriptor]?.stalls.noted(sent: sent, lastByte: lastByte, at: now) ?? false
  }

  /// Whether a socket is still the transfer's own, and libcurl has not gone on with it since TCP was to be connected.
  func isConnecting(_ descriptor: Int32, by transfer: Transfer) -> Bool {
    guard let socket = sockets[descriptor] else { return false }
    return socket.opener == ObjectIdentifier(transfer) && !socket.isReady && socket.isWanted
      && socket.watched == .write
  }

  /// Whether connections to an endpoint are being opened, and none is ready.
  func isOnlyConnecting(_ endpoint: IPEndpoint, _ group: ConnectionGroup?) -> Bool {
    !connecting.isEmpty && connecting[endpoint] != nil && group?.isReady(endpoint) != true
  }

  private mutating func connected(_ endpoint: IPEndpoint) {
    guard let count = connecting[endpoint] else { return }
    connecting[endpoint] = count > 1 ? count - 1 : nil
  }

  // MARK: Watching

  /// What the loop is to do for libcurl's new interest in a socket.
  enum Watching: Equatable {
    case watch(Readiness)
    case unwatch
    /// The loop watches it as it should.
    case leave
  }

  /// libcurl's interest in a socket has changed.
  ///
  /// A connection that becomes idle stays watched: the next request would have it watched again, two system calls
  /// for each. A socket that is being connected may be closed without a word, and its number mean another one.
  mutating func wants(_ descriptor: Int32, _ readiness: Readiness) -> Watching {
    if let socket = sockets[descriptor] {
      socket.isWanted = !readiness.isEmpty
      if socket.isReady, readiness.isEmpty || socket.watched == readiness { return .leave }
      socket.watched = readiness
    }
    return readiness.isEmpty ? .unwatch : .watch(readiness)
  }

  /// Something has happened on a socket.
  ///
  /// - Returns: whether libcurl wants to know of it. The loop is to unwatch it otherwise: the other side has closed an
  ///   idle connection, which libcurl finds out when it wants to use it.
  mutating func isWanted(_ descriptor: Int32) -> Bool {
    guard let socket = sockets[descriptor], !socket.isWanted else { return true }
    socket.watched = []
    return false
  }
}
