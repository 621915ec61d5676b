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
  private static let stopTag = UInt64.max
  /// The epoll tag of the first frontend; the other frontends have the next tags. A lower tag belongs to a
  /// connection: twice the connection's number, plus 1 for the side of the server.
  private static let firstFrontendTag = UInt64(1) << 62

  private let frontends: [Splice.Frontend]
  private let listeners: [Int32]
  private let state: SpliceState
  private let stopped: StopSignal
  private let poller: Int32
  private let clock = SystemTimeSource()
  private var connections: [Int: ProxiedConnection] = [:]
  /// The numbers of the connections for which a stall or a fault has a due time.
  private var timed: Set<Int> = []
  private var nextNumber = 0
  /// The number of connections so far for each server name of each frontend.
  private var turns: [String: Int] = [:]

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

  private func move(_ connection: ProxiedConnection, isServer: Bool, _ events: UInt32) {
    let isBroken = events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
    let hasEnded = isServer ? connection.server?.hasEnded == true : connection.client.hasEnded
    do throws(ProxiedConnection.Side.Failure) {
      // epoll reports EPOLLERR and EPOLLHUP again and again, whatever is requested, until the descriptor is
      // closed.
      if isBroken, hasEnded || connection.stalledUntil != nil { throw .broken }
      guard connection.stalledUntil == nil else { return }
      if isServer { try moveFromServer(connection, events) } else { try moveFromClient(connection, events) }
    } catch {
      return end(connection, byReset: true)
    }
    if connections[connection.number] != nil { update(connection) }
  }

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

  /// Passes FINs on, updates the events that the poller watches, and closes a finished connection.
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

  private func events(
    _ connection: ProxiedConnection, _ side: ProxiedConnection.Side, _ other: ProxiedConnection.Side
  ) -> UInt32 {
    (connection.wantsRead(from: side, to: other) ? EPOLLIN.rawValue : 0)
      | (connection.wantsWrite(to: side) ? EPOLLOUT.rawValue : 0)
  }

  private func setInterest(_ side: inout ProxiedConnection.Side, _ events: UInt32, _ tag: UInt64) {
    guard side.interest != events else { return }
    watch(side.descriptor, events, tag, isNew: side.interest == nil)
    side.interest = events
  }

  private func watch(_ descriptor: Int32, _ events: UInt32, _ tag: UInt64, isNew: Bool) {
    var event = epoll_event(events: events, data: epoll_data(u64: tag))
    epoll_ctl(poller, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event)
  }

  // MARK: Faults and time

  private func setTimer(_ connection: ProxiedConnection) {
    if connection.stalledUntil != nil || connection.faultTime != nil {
      timed.insert(connection.number)
    } else {
      timed.remove(connection.number)
    }
  }

  /// - Returns: whether the connection ended, or passes no bytes for now.
  private func injectIfDue(_ connection: ProxiedConnection) -> Bool {
    guard connection.hasReachedFaultBytes else { return false }
    inject(connection)
    return connections[connection.number] == nil || connection.stalledUntil != nil
  }

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

  /// The time until the next due connection in milliseconds, rounded up.
  private func timeout() -> Int32 {
    let due = timed.lazy.compactMap { [connections] in connections[$0] }.compactMap {
      $0.stalledUntil ?? $0.faultTime
    }
    .min()
    guard let due else { return -1 }
    return Int32(clamping: max(0, (due - clock.now()).nanoseconds + 999_999) / 1_000_000)
  }

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
