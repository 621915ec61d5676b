import CAres
import Glibc
import NetOptCore

/// A c-ares channel on an event loop. Each look-up is an `AresLookUp`, which also receives the outcome.
///
/// The callbacks of c-ares only record events: the descriptors to watch, and the look-ups that have ended.
/// The channel acts on the records at the end of the turn. So no code calls c-ares from inside a c-ares
/// callback. In one turn c-ares may close a socket and open another socket with the same number. The channel
/// then carries out only the last of c-ares's requests to watch that number.
///
/// The channel opens its handle at the first look-up. Look-ups under way hold a reference to the actor, and
/// so does the loop while it watches a descriptor. So c-ares never calls an actor that no longer exists.
actor AresChannel: ReadinessHandler, TurnHandler {
  private nonisolated let loop: EventLoop
  private let configuration: ResolverConfiguration
  /// The configured name servers. When empty, c-ares uses the system's name servers.
  private let servers: [IPEndpoint]
  /// Owns c-ares's channel; `nil` before the first look-up, while `renew` replaces the channel, and after the
  /// shutdown.
  private var handle: AresHandle?
  /// Fires when c-ares's next timeout passes; `nil` before the first look-up.
  private var timer: AresTimer?
  private var isShutDown = false
  /// The readiness that c-ares asked for in this turn, by descriptor. An empty readiness means that c-ares no
  /// longer wants the descriptor watched.
  private var interests: [Int32: Readiness] = [:]
  /// The look-ups that have ended in this turn.
  private var ended: [(lookUp: AresLookUp, outcome: AresLookUp.Outcome)] = []
  /// Whether the loop will call `turnEnds` at the end of this turn.
  private var awaitsEndOfTurn = false
  /// The version of resolv.conf(5) from which c-ares read the system's name servers when the handle was
  /// opened. When the file has another version at a later look-up, the channel is renewed. `nil` when the
  /// file did not exist, or when `servers` are configured.
  private var system: SystemServers?
  /// Whether `renew` is closing the handle. The look-ups that c-ares ends during this time go to
  /// `interrupted`.
  private var isRenewing = false
  /// The look-ups that a renewal has interrupted and will start again.
  private var interrupted: [AresLookUp] = []

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Makes a channel. Opens no descriptor.
  ///
  /// - Parameter servers: the name servers to query. When empty, the channel uses the system's name servers.
  init(_ loop: EventLoop, _ configuration: ResolverConfiguration, servers: [IPEndpoint]) {
    self.loop = loop
    self.configuration = configuration
    self.servers = servers
  }

  /// Starts a look-up of IPv4 and IPv6 addresses. Renews the channel first if the system's name servers have
  /// changed. c-ares reads the hosts file before it queries name servers. c-ares does not sort the addresses
  /// by RFC 6724, because its sort blocks on sockets; `AddressOrder` sorts them.
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
    // The callback releases the reference. c-ares calls it exactly once, on success and on failure.
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

  /// Fails the look-ups under way with `shutDown` and closes the channel. Later look-ups fail too.
  func shutDown() {
    isShutDown = true
    actAtEndOfTurn()
    // `take` empties the property before the handle is closed: closing calls back into the actor, and ends
    // all look-ups.
    let last = handle.take()
    _ = consume last
  }

  /// Closes c-ares's channel and starts the look-ups under way again on a new channel. c-ares reads the
  /// system's name servers only when a channel is opened (c-ares has `ares_reinit` only since 1.22). The old
  /// channel would continue to query the servers of the previous network.
  func renew() {
    guard handle != nil, !isShutDown else { return }
    actAtEndOfTurn()
    isRenewing = true
    // `take` empties the property before the handle is closed: closing calls back into the actor.
    let last = handle.take()
    _ = consume last
    isRenewing = false
    let again = interrupted
    interrupted = []
    for lookUp in again { start(lookUp) }
  }

  /// Returns c-ares's channel, and opens it if necessary.
  private func open() throws(NetOptError) -> ares_channel {
    if let channel = handle?.channel { return channel }
    // Read before c-ares reads the file: when the file changes in between, the next look-up opens the channel
    // again.
    let system = servers.isEmpty ? SystemServers(configuration.systemFile) : nil
    let opened = try AresHandle.open(
      configuration, servers: servers,
      callback: { data, descriptor, readable, writable in
        guard let data else { return }
        var interest: Readiness = []
        if readable != 0 { interest.insert(.read) }
        if writable != 0 { interest.insert(.write) }
        Unmanaged<AresChannel>.fromOpaque(data).takeUnretainedValue()
          .assumeIsolated { $0.setInterest(interest, of: descriptor) }
      }, data: Unmanaged.passUnretained(self).toOpaque())
    self.system = system
    let channel = opened.channel
    handle = consume opened
    timer = timer ?? AresTimer(self)
    return channel
  }

  // MARK: Records of the callbacks

  /// Records which readiness of a descriptor c-ares waits for.
  private func setInterest(_ interest: Readiness, of descriptor: Int32) {
    interests[descriptor] = interest
    actAtEndOfTurn()
  }

  /// Records the result of a look-up in `ended`, or the look-up in `interrupted` when a renewal ended it.
  ///
  /// - Parameters:
  ///   - status: c-ares's status (ares_getaddrinfo(3)).
  ///   - answer: the addresses; `nil` when c-ares has no result.
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

  // MARK: Callbacks of the loop

  nonisolated func ready(_ descriptor: Int32, for readiness: Readiness) {
    // The channel reads from and writes to a failed descriptor, so that c-ares detects the error.
    let reads = !readiness.isDisjoint(with: [.read, .error])
    let writes = !readiness.isDisjoint(with: [.write, .error])
    assumeIsolated { $0.process(reads: reads ? descriptor : nil, writes: writes ? descriptor : nil) }
  }

  nonisolated func turnEnds() { assumeIsolated { $0.act() } }

  /// Makes c-ares read, write, and handle the timeouts that have passed.
  ///
  /// - Parameters:
  ///   - reads: the descriptor to read from, or `nil`.
  ///   - writes: the descriptor to write to, or `nil`.
  fileprivate func process(reads: Int32? = nil, writes: Int32? = nil) {
    guard let channel = handle?.channel, let sockets = handle?.sockets else { return }
    actAtEndOfTurn()
    sockets.beginReading()
    var before = sockets.taken
    ares_process_fd(channel, reads ?? ARES_SOCKET_BAD, writes ?? ARES_SOCKET_BAD)
    guard let reads else { return }
    // c-ares takes a message in portions; 1.18 takes one portion in each call. `sockets` has already read the
    // rest of the message, so epoll does not report it.
    while sockets.hasUnread(reads), sockets.taken > before {
      before = sockets.taken
      ares_process_fd(channel, reads, ARES_SOCKET_BAD)
    }
  }

  /// Makes the loop call `act` at the end of this turn.
  private func actAtEndOfTurn() {
    if awaitsEndOfTurn { return }
    awaitsEndOfTurn = true
    loop.atEndOfTurn(self)
  }

  /// Acts on the records of this turn: watches descriptors, schedules the timer, and reports the look-ups
  /// that have ended.
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

  /// Schedules the timer for c-ares's next timeout, or cancels the timer if there is none.
  private func setTimer() {
    guard let timer else { return }
    var rest = timeval()
    guard let channel = handle?.channel, ares_timeout(channel, nil, &rest) != nil else {
      return loop.cancel(timer)
    }
    // Old versions of c-ares truncate the timeout to milliseconds. A timer that fires too early would call
    // c-ares in vain until the time is reached.
    let wait = Duration.seconds(rest.tv_sec) + .microseconds(rest.tv_usec) + .milliseconds(1)
    loop.schedule(timer, at: loop.now() + wait)
  }
}

/// The version of the file with the system's name servers (resolv.conf(5)): the file's inode, size, and time
/// of modification. The channel compares versions at each look-up, because the system may write the file
/// some time after the network has changed.
private struct SystemServers: Equatable {
  private let file: UInt64
  private let size: Int
  private let seconds: Int
  private let nanoseconds: Int

  /// Reads the current version of the file at a path. `nil` when the file does not exist.
  init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    file = UInt64(status.st_ino)
    size = Int(status.st_size)
    seconds = status.st_mtim.tv_sec
    nanoseconds = status.st_mtim.tv_nsec
  }
}

/// Calls c-ares when its next timeout has passed.
private final class AresTimer: LoopTimer {
  private weak let channel: AresChannel?

  init(_ channel: AresChannel) { self.channel = channel }

  override func fire() { channel?.assumeIsolated { $0.process() } }
}
