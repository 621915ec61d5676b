import CAres
import Glibc
import NetOptCore

/// A c-ares channel on an event loop. Look-ups come in and answers go out as `AresLookUp`s.
///
/// c-ares's callbacks record what happened: which descriptors it wants watched, and which look-ups have ended. At the
/// end of the turn the channel acts on it. So nothing calls c-ares from inside c-ares, and of what it wants of a
/// descriptor that it closes and opens again, the last counts.
///
/// The channel is opened at the first look-up. While look-ups are under way they hold the actor, and so does the loop
/// while it watches a descriptor: c-ares never calls an actor that is gone.
actor AresChannel: ReadinessHandler, TurnHandler {
  private nonisolated let loop: EventLoop
  private let configuration: ResolverConfiguration
  private let servers: [IPEndpoint]
  private var handle: AresHandle?
  private var timer: AresTimer?
  private var isShutDown = false
  private var interests: [Int32: Readiness] = [:]
  private var ended: [(lookUp: AresLookUp, outcome: AresLookUp.Outcome)] = []
  private var awaitsEndOfTurn = false
  /// What the system's configuration was when the handle was opened.
  private var system: SystemServers?
  private var isRenewing = false
  /// The look-ups that a renewal has ended, to be started again.
  private var interrupted: [AresLookUp] = []

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Makes a channel that opens nothing yet.
  ///
  /// - Parameter servers: whom to ask; the system's name servers when empty.
  init(_ loop: EventLoop, _ configuration: ResolverConfiguration, servers: [IPEndpoint]) {
    self.loop = loop
    self.configuration = configuration
    self.servers = servers
  }

  /// Starts a look-up of both families, the hosts file first, without the order of RFC 6724, for which c-ares would
  /// block on sockets: `AddressOrder` brings one.
  func start(_ lookUp: AresLookUp) {
    actAtEndOfTurn()
    if isShutDown {
      ended.append((lookUp, .failure(AresStatus.shutDown)))
      return
    }
    if servers.isEmpty, handle != nil, SystemServers(configuration.systemFile) != system { renew() }
    let channel: ares_channel
    do throws(NetOptError) {
      channel = try open()
    } catch {
      ended.append((lookUp, .failure(error)))
      return
    }
    var hints = ares_addrinfo_hints()
    hints.ai_flags = ARES_AI_NOSORT
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = netopt_ares_stream
    // The callback takes the reference back; it is called once, whatever happens.
    ares_getaddrinfo(
      channel, lookUp.name, nil, &hints,
      { argument, status, _, result in
        guard let argument else { return }
        let lookUp = Unmanaged<AresLookUp>.fromOpaque(argument).takeRetainedValue()
        let answer = result.map { AresAnswer($0.pointee) }
        ares_freeaddrinfo(result)
        lookUp.channel.assumeIsolated { $0.end(lookUp, status, answer) }
      }, Unmanaged.passRetained(lookUp).toOpaque())
  }

  /// Ends what is under way and closes the channel. Later look-ups fail.
  func shutDown() {
    isShutDown = true
    actAtEndOfTurn()
    // Out of the actor first: closing calls back. All look-ups end in it.
    let last = handle.take()
    _ = consume last
  }

  /// Closes the channel and starts what is under way on a new one: c-ares reads the system's configuration when a channel
  /// is opened (`ares_reinit` came with 1.22), and goes on asking servers of a network that is gone.
  func renew() {
    guard handle != nil, !isShutDown else { return }
    actAtEndOfTurn()
    isRenewing = true
    // Out of the actor first: closing calls back.
    let last = handle.take()
    _ = consume last
    isRenewing = false
    let again = interrupted
    interrupted = []
    for lookUp in again { start(lookUp) }
  }

  private func open() throws(NetOptError) -> ares_channel {
    if let channel = handle?.channel { return channel }
    // Looked at first: a file that changes meanwhile is then read again.
    let system = servers.isEmpty ? SystemServers(configuration.systemFile) : nil
    let opened = try AresHandle.open(
      configuration, servers: servers,
      callback: { data, descriptor, readable, writable in
        guard let data else { return }
        var interest: Readiness = []
        if readable != 0 { interest.insert(.read) }
        if writable != 0 { interest.insert(.write) }
        Unmanaged<AresChannel>.fromOpaque(data).takeUnretainedValue()
          .assumeIsolated { $0.wants(interest, of: descriptor) }
      }, data: Unmanaged.passUnretained(self).toOpaque())
    self.system = system
    let channel = opened.channel
    handle = consume opened
    timer = timer ?? AresTimer(self)
    return channel
  }

  // MARK: What callbacks record

  private func wants(_ interest: Readiness, of descriptor: Int32) {
    interests[descriptor] = interest
    actAtEndOfTurn()
  }

  private func end(_ lookUp: AresLookUp, _ status: Int32, _ answer: AresAnswer?) {
    actAtEndOfTurn()
    if isRenewing, status == netopt_ares_destruction { return interrupted.append(lookUp) }
    guard status == netopt_ares_success, let answer, !answer.addresses.isEmpty else {
      let status = status == netopt_ares_success ? netopt_ares_no_data : status
      ended.append((lookUp, .failure(AresStatus.error(status, name: lookUp.name, servers: servers))))
      return
    }
    let addresses = AddressOrder.sorted(answer.addresses, isReachable: SourceAddress.fits)
      .prefix(AresAnswer.mostAddresses)
    ended.append((lookUp, .success(ResolvedAddresses(Array(addresses), timeToLive: answer.timeToLive))))
  }

  // MARK: What the loop tells

  nonisolated func ready(_ descriptor: Int32, for readiness: Readiness) {
    // A failed descriptor is read from and written to: that is how c-ares learns of it.
    let reads = !readiness.isDisjoint(with: [.read, .error])
    let writes = !readiness.isDisjoint(with: [.write, .error])
    assumeIsolated { $0.process(reads: reads ? descriptor : nil, writes: writes ? descriptor : nil) }
  }

  nonisolated func turnEnds() { assumeIsolated { $0.act() } }

  fileprivate func process(reads: Int32? = nil, writes: Int32? = nil) {
    guard let channel = handle?.channel, let sockets = handle?.sockets else { return }
    actAtEndOfTurn()
    sockets.beginReading()
    var before = sockets.taken
    ares_process_fd(channel, reads ?? ARES_SOCKET_BAD, writes ?? ARES_SOCKET_BAD)
    guard let reads else { return }
    // c-ares takes a message in portions, 1.18 one in each call. The rest has left the socket, so epoll does not report it.
    while sockets.hasUnread(reads), sockets.taken > before {
      before = sockets.taken
      ares_process_fd(channel, reads, ARES_SOCKET_BAD)
    }
  }

  private func actAtEndOfTurn() {
    if awaitsEndOfTurn { return }
    awaitsEndOfTurn = true
    loop.atEndOfTurn(self)
  }

  private func act() {
    awaitsEndOfTurn = false
    for (descriptor, interest) in interests {
      if interest.isEmpty {
        loop.unwatch(descriptor, of: self)
      } else {
        loop.watch(descriptor, for: interest, self)
      }
    }
    interests.removeAll(keepingCapacity: true)
    setTimer()
    let ended = ended
    self.ended = []
    for (lookUp, outcome) in ended { lookUp.end(outcome) }
  }

  private func setTimer() {
    guard let timer else { return }
    var rest = timeval()
    guard let channel = handle?.channel, ares_timeout(channel, nil, &rest) != nil else {
      return loop.cancel(timer)
    }
    // Old versions cut the time to milliseconds; being too early would mean to try in vain until the time has come.
    let wait = Duration.seconds(rest.tv_sec) + .microseconds(rest.tv_usec) + .milliseconds(1)
    loop.schedule(timer, at: loop.now() + wait)
  }
}

/// Which issue of the system's name server configuration (resolv.conf(5)) there is. After a change of the network it may be
/// written a while later.
private struct SystemServers: Equatable {
  private let file: UInt64
  private let size: Int
  private let seconds: Int
  private let nanoseconds: Int

  /// The present one; `nil` without the file.
  init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    file = UInt64(status.st_ino)
    size = Int(status.st_size)
    seconds = status.st_mtim.tv_sec
    nanoseconds = status.st_mtim.tv_nsec
  }
}

/// Tells a channel that time has passed.
private final class AresTimer: LoopTimer {
  private weak let channel: AresChannel?

  init(_ channel: AresChannel) { self.channel = channel }

  override func fire() { channel?.assumeIsolated { $0.process() } }
}
