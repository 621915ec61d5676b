import CEventLoop
import Glibc
import NetOptCore
import NetOptTestSupport

/// The loop of a `Splice`, which is a TCP proxy that injects faults. The loop accepts connections, forwards
/// their bytes and injects their faults. It waits for all sockets with epoll(7).
///
/// `@unchecked Sendable`: the splice creates the loop and hands the loop to the splice's thread. From then on
/// only this thread uses the loop.
final class SpliceLoop: @unchecked Sendable {
  /// The epoll tag of `stopped`.
  private static let stopTag = UInt64.max
  /// The epoll tag of the first frontend; the other frontends have the next tags. A lower tag belongs to a
  /// connection: twice the connection's number, plus 1 for the side of the server.
  private static let firstFrontendTag = UInt64(1) << 62

  /// The frontends. A connection names its frontend by the index in this array.
  private let frontends: [Splice.Frontend]
  /// The listening sockets, in the order of the frontends.
  private let listeners: [Int32]
  /// The figures, and the settings of the faults.
  private let state: SpliceState
  /// Ends the loop.
  private let stopped: StopSignal
  /// The epoll descriptor.
  private let poller: Int32
  private let clock = SystemTimeSource()
  /// The open connections, by number.
  private var connections: [Int: ProxiedConnection] = [:]
  /// The numbers of the connections with a timer: a stall will end, or a fault has a due time.
  private var timed: Set<Int> = []
  /// The number of the next connection.
  private var nextNumber = 0
  /// The number of connections to servers so far, by the index of the frontend and the server name. It
  /// decides which of the name's servers is next.
  private var turns: [String: Int] = [:]

  /// Starts listening at the frontends.
  init(_ frontends: [Splice.Frontend], _ state: SpliceState, _ stopped: StopSignal) throws {
    self.frontends = frontends
    self.state = state
    self.stopped = stopped
    var listeners: [Int32] = []
    do {
      for frontend in frontends { listeners.append(try LoopbackSocket.listening(on: frontend.endpoint)) }
    } catch {
      for listener in listeners { close(listener) }
      throw error
    }
    self.listeners = listeners
    poller = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard poller >= 0 else { throw TestSupportError("the splice has no epoll descriptor") }
  }

  /// Runs the loop until `stopped` is raised. Then closes all sockets.
  func run() {
    watch(stopped.descriptor, EPOLLIN.rawValue, Self.stopTag, isNew: true)
    for (index, listener) in listeners.enumerated() {
      watch(listener, EPOLLIN.rawValue, Self.firstFrontendTag + UInt64(index), isNew: true)
    }
    var events = [epoll_event](repeating: epoll_event(), count: 64)
    loop: while true {
      let count = epoll_wait(poller, &events, 64, timeout())
      for event in events.prefix(max(0, Int(count))) {
        let tag = event.data.u64
        if tag == Self.stopTag { break loop }
        if tag >= Self.firstFrontendTag {
          accept(frontend: Int(tag - Self.firstFrontendTag))
        } else if let connection = connections[Int(tag >> 1)] {
          move(connection, isServer: tag & 1 == 1, event.events)
        }
      }
      fireTimers()
    }
    for connection in Array(connections.values) { end(connection, byReset: true) }
    for listener in listeners { close(listener) }
    close(poller)
  }

  // MARK: Opening

  /// Accepts all connections that wait at a frontend.
  private func accept(frontend: Int) {
    while true {
      let descriptor = Glibc.accept(listeners[frontend], nil, nil)
      guard descriptor >= 0 else { return }
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
      noDelay(descriptor)
      let number = nextNumber
      nextNumber += 1
      let fault = state.injects.withLock { $0 } ? state.fault(number) : nil
      let connection = ProxiedConnection(
        number, frontend: frontend, client: descriptor, fault: fault, at: clock.now())
      connections[number] = connection
      updateFigures {
        $0.connections += 1
        $0.open += 1
      }
      if !frontends[frontend].readsHello { connect(connection, "") }
      update(connection)
    }
  }

  /// Disables Nagle's algorithm: otherwise each exchange could wait 40 ms for a delayed ACK.
  private func noDelay(_ descriptor: Int32) {
    var yes: Int32 = 1
    setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Connects to the server whose turn it is for a server name. Ends the connection when there is no server.
  private func connect(_ connection: ProxiedConnection, _ name: String) {
    let servers = frontends[connection.frontend].servers[name] ?? []
    let key = "\(connection.frontend) \(name)"
    let turn = turns[key, default: 0]
    turns[key] = turn + 1
    guard !servers.isEmpty,
      let descriptor = try? LoopbackSocket.connecting(to: servers[turn % servers.count])
    else {
      updateFigures { $0.refused += 1 }
      return end(connection, byReset: true)
    }
    noDelay(descriptor)
    connection.server = ProxiedConnection.Side(descriptor: descriptor)
  }

  // MARK: Passing bytes

  /// Handles epoll events of a socket: passes bytes on in both directions.
  ///
  /// - Parameter isServer: whether the socket is that of the server's side.
  private func move(_ connection: ProxiedConnection, isServer: Bool, _ events: UInt32) {
    let isBroken = events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
    let hasEnded = isServer ? connection.server?.hasEnded == true : connection.client.hasEnded
    do throws(ProxiedConnection.Side.Failure) {
      // epoll reports EPOLLERR and EPOLLHUP again and again, whatever events are requested, until the
      // descriptor is closed. So a broken socket from which the splice would not read ends the connection.
      // Otherwise `receive` finds the error.
      if isBroken, hasEnded || connection.stalledUntil != nil { throw .broken }
      guard connection.stalledUntil == nil else { return }
      if isServer { try moveFromServer(connection, events) } else { try moveFromClient(connection, events) }
    } catch {
      return end(connection, byReset: true)
    }
    if connections[connection.number] != nil { update(connection) }
  }

  /// Handles events of the client's socket. Collects the first bytes until they contain the server name, and
  /// then connects to the server.
  private func moveFromClient(
    _ connection: ProxiedConnection, _ events: UInt32
  ) throws(ProxiedConnection.Side.Failure) {
    if events & EPOLLOUT.rawValue != 0 { try connection.client.send() }
    guard !connection.client.hasEnded, events & ~EPOLLOUT.rawValue != 0 else { return }
    let bytes = try connection.client.receive()
    connection.lastByte = clock.now()
    if connection.server == nil {
      connection.hello += bytes
      guard case .complete(let name) = ClientHello.read(connection.hello) else {
        if connection.client.hasEnded { end(connection, byReset: false) }
        return
      }
      connect(connection, name ?? "")
      guard connections[connection.number] != nil else { return }
      connection.server?.outgoing = connection.hello
      connection.hello = []
    } else {
      connection.server?.outgoing += bytes
    }
    if injectIfDue(connection) { return }
    try connection.server?.send()
  }

  /// Handles events of the server's socket.
  private func moveFromServer(
    _ connection: ProxiedConnection, _ events: UInt32
  ) throws(ProxiedConnection.Side.Failure) {
    if events & EPOLLOUT.rawValue != 0 { try connection.server?.send() }
    guard connection.server?.hasEnded == false, events & ~EPOLLOUT.rawValue != 0 else { return }
    do throws(ProxiedConnection.Side.Failure) {
      if let bytes = try connection.server?.receive() { connection.client.outgoing += bytes }
    } catch {
      if connection.server?.received == 0 { updateFigures { $0.refused += 1 } }
      throw error
    }
    connection.lastByte = clock.now()
    if injectIfDue(connection) { return }
    try connection.client.send()
  }

  /// Passes FINs on, closes a finished connection, and sets the events and the timer for the present state of
  /// a connection.
  private func update(_ connection: ProxiedConnection) {
    guard var server = connection.server else {
      setInterest(&connection.client, EPOLLIN.rawValue, UInt64(connection.number) << 1)
      return setTimer(connection)
    }
    if connection.client.hasEnded, server.outgoing.isEmpty, !server.isShut {
      server.isShut = true
      shutdown(server.descriptor, Int32(SHUT_WR))
    }
    if server.hasEnded, connection.client.outgoing.isEmpty, !connection.client.isShut {
      connection.client.isShut = true
      shutdown(connection.client.descriptor, Int32(SHUT_WR))
    }
    connection.server = server
    if connection.isOver { return end(connection, byReset: false) }
    let tag = UInt64(connection.number) << 1
    setInterest(&connection.client, events(connection, connection.client, server), tag)
    setInterest(&server, events(connection, server, connection.client), tag + 1)
    connection.server = server
    setTimer(connection)
  }

  /// The epoll events for which a side must be watched now.
  private func events(
    _ connection: ProxiedConnection, _ side: ProxiedConnection.Side, _ other: ProxiedConnection.Side
  ) -> UInt32 {
    (connection.wantsRead(from: side, to: other) ? EPOLLIN.rawValue : 0)
      | (connection.wantsWrite(to: side) ? EPOLLOUT.rawValue : 0)
  }

  /// Watches the socket of a side for these events.
  private func setInterest(_ side: inout ProxiedConnection.Side, _ events: UInt32, _ tag: UInt64) {
    guard side.interest != events else { return }
    watch(side.descriptor, events, tag, isNew: side.interest == nil)
    side.interest = events
  }

  /// Tells epoll the events of a descriptor.
  ///
  /// - Parameter isNew: whether epoll does not watch the descriptor yet.
  private func watch(_ descriptor: Int32, _ events: UInt32, _ tag: UInt64, isNew: Bool) {
    var event = epoll_event(events: events, data: epoll_data(u64: tag))
    epoll_ctl(poller, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event)
  }

  // MARK: Faults and time

  /// Notes in `timed` whether the connection has a timer.
  private func setTimer(_ connection: ProxiedConnection) {
    if connection.stalledUntil != nil || connection.faultTime != nil {
      timed.insert(connection.number)
    } else {
      timed.remove(connection.number)
    }
  }

  /// Injects the fault of a connection if it has reached the fault's number of bytes.
  ///
  /// - Returns: whether the connection has ended or is stalled.
  private func injectIfDue(_ connection: ProxiedConnection) -> Bool {
    guard connection.hasReachedFaultBytes else { return false }
    inject(connection)
    return connections[connection.number] == nil || connection.stalledUntil != nil
  }

  /// Injects the fault of a connection, unless injection is off. The connection has no fault afterwards.
  private func inject(_ connection: ProxiedConnection) {
    guard let fault = connection.fault else { return }
    connection.fault = nil
    guard state.injects.withLock({ $0 }) else { return }
    switch fault.action {
    case .reset:
      updateFigures { $0.resets += 1 }
      end(connection, byReset: true)
    case .close:
      updateFigures { $0.closes += 1 }
      end(connection, byReset: false)
    case .stall(let time):
      updateFigures { $0.stalls += 1 }
      connection.stalledUntil = clock.now() + time
    }
  }

  /// Ends the stalls that are over, and injects the faults that are due.
  private func fireTimers() {
    guard !timed.isEmpty else { return }
    let now = clock.now()
    for connection in timed.compactMap({ connections[$0] }) {
      if let end = connection.stalledUntil {
        if end <= now { connection.stalledUntil = nil }
      } else if let due = connection.faultTime, due <= now {
        inject(connection)
      }
      if connections[connection.number] != nil { update(connection) }
    }
  }

  /// The time until the earliest timer in milliseconds, rounded up; -1 without a timer.
  private func timeout() -> Int32 {
    let due = timed.lazy.compactMap { [connections] in connections[$0] }.compactMap {
      $0.stalledUntil ?? $0.faultTime
    }
    .min()
    guard let due else { return -1 }
    return Int32(clamping: max(0, (due - clock.now()).nanoseconds + 999_999) / 1_000_000)
  }

  /// Closes both sides of a connection and forgets it. Does nothing when it has ended before.
  private func end(_ connection: ProxiedConnection, byReset: Bool) {
    guard connections.removeValue(forKey: connection.number) != nil else { return }
    timed.remove(connection.number)
    connection.close(byReset: byReset)
    updateFigures { $0.open -= 1 }
  }

  private func updateFigures(_ change: (inout Splice.Figures) -> Void) {
    state.figures.withLock { change(&$0) }
  }
}
