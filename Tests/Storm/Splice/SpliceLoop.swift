import CEventLoop
import Glibc
import NetOptCore
import NetOptTestSupport

/// The loop of the splice's thread: epoll(7) over all connections.
///
/// `@unchecked Sendable`: the splice creates the loop and hands it to its thread. From then on only that
/// thread uses it.
final class SpliceLoop: @unchecked Sendable {
  private static let stopTag = UInt64.max
  /// Tags from this value on are doors. A lower tag is a passage's number, doubled, plus 1 for the server's
  /// side.
  private static let firstDoorTag = UInt64(1) << 62

  private let doors: [Splice.Door]
  private let listeners: [Int32]
  private let state: SpliceState
  private let stopped: StopSignal
  private let poller: Int32
  private let clock = SystemTimeSource()
  private var passages: [Int: Passage] = [:]
  /// The passages that have a due time.
  private var timed: Set<Int> = []
  private var nextNumber = 0
  /// The number of connections so far for each server name of each door.
  private var turns: [String: Int] = [:]

  init(_ doors: [Splice.Door], _ state: SpliceState, _ stopped: StopSignal) throws {
    self.doors = doors
    self.state = state
    self.stopped = stopped
    var listeners: [Int32] = []
    do {
      for door in doors { listeners.append(try LoopbackSocket.listening(on: door.endpoint)) }
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
      watch(listener, EPOLLIN.rawValue, Self.firstDoorTag + UInt64(index), isNew: true)
    }
    var events = [epoll_event](repeating: epoll_event(), count: 64)
    loop: while true {
      let count = epoll_wait(poller, &events, 64, timeout())
      for event in events.prefix(max(0, Int(count))) {
        let tag = event.data.u64
        if tag == Self.stopTag { break loop }
        if tag >= Self.firstDoorTag {
          accept(door: Int(tag - Self.firstDoorTag))
        } else if let passage = passages[Int(tag >> 1)] {
          move(passage, isServer: tag & 1 == 1, event.events)
        }
      }
      passTime()
    }
    for passage in Array(passages.values) { end(passage, byReset: true) }
    for listener in listeners { close(listener) }
    close(poller)
  }

  // MARK: Opening

  private func accept(door: Int) {
    while true {
      let descriptor = Glibc.accept(listeners[door], nil, nil)
      guard descriptor >= 0 else { return }
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
      noDelay(descriptor)
      let number = nextNumber
      nextNumber += 1
      let fault = state.injects.withLock { $0 } ? state.fault(number) : nil
      let passage = Passage(number, door: door, client: descriptor, fault: fault, at: clock.now())
      passages[number] = passage
      count {
        $0.connections += 1
        $0.open += 1
      }
      if !doors[door].readsHello { connect(passage, "") }
      update(passage)
    }
  }

  /// Disables Nagle's algorithm: otherwise each exchange could wait 40 ms for a delayed ACK.
  private func noDelay(_ descriptor: Int32) {
    var yes: Int32 = 1
    setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
  }

  private func connect(_ passage: Passage, _ name: String) {
    let servers = doors[passage.door].servers[name] ?? []
    let key = "\(passage.door) \(name)"
    let turn = turns[key, default: 0]
    turns[key] = turn + 1
    guard !servers.isEmpty,
      let descriptor = try? LoopbackSocket.connecting(to: servers[turn % servers.count])
    else {
      count { $0.refused += 1 }
      return end(passage, byReset: true)
    }
    noDelay(descriptor)
    passage.server = Passage.Side(descriptor: descriptor)
  }

  // MARK: Passing bytes

  private func move(_ passage: Passage, isServer: Bool, _ events: UInt32) {
    let isBroken = events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
    let hasEnded = isServer ? passage.server?.hasEnded == true : passage.client.hasEnded
    do throws(Passage.Side.Failure) {
      // epoll reports EPOLLERR and EPOLLHUP again and again, whatever is requested, until the descriptor is
      // closed.
      if isBroken, hasEnded || passage.stalledUntil != nil { throw .broken }
      guard passage.stalledUntil == nil else { return }
      if isServer { try moveFromServer(passage, events) } else { try moveFromClient(passage, events) }
    } catch {
      return end(passage, byReset: true)
    }
    if passages[passage.number] != nil { update(passage) }
  }

  private func moveFromClient(_ passage: Passage, _ events: UInt32) throws(Passage.Side.Failure) {
    if events & EPOLLOUT.rawValue != 0 { try passage.client.send() }
    guard !passage.client.hasEnded, events & ~EPOLLOUT.rawValue != 0 else { return }
    let bytes = try passage.client.receive()
    passage.lastByte = clock.now()
    if passage.server == nil {
      passage.hello += bytes
      guard case .complete(let name) = ClientHello.read(passage.hello) else {
        if passage.client.hasEnded { end(passage, byReset: false) }
        return
      }
      connect(passage, name ?? "")
      guard passages[passage.number] != nil else { return }
      passage.server?.outgoing = passage.hello
      passage.hello = []
    } else {
      passage.server?.outgoing += bytes
    }
    if injectIfDue(passage) { return }
    try passage.server?.send()
  }

  private func moveFromServer(_ passage: Passage, _ events: UInt32) throws(Passage.Side.Failure) {
    if events & EPOLLOUT.rawValue != 0 { try passage.server?.send() }
    guard passage.server?.hasEnded == false, events & ~EPOLLOUT.rawValue != 0 else { return }
    do throws(Passage.Side.Failure) {
      if let bytes = try passage.server?.receive() { passage.client.outgoing += bytes }
    } catch {
      if passage.server?.received == 0 { count { $0.refused += 1 } }
      throw error
    }
    passage.lastByte = clock.now()
    if injectIfDue(passage) { return }
    try passage.client.send()
  }

  /// Passes FINs on, updates the events that the poller watches, and closes a finished passage.
  private func update(_ passage: Passage) {
    guard var server = passage.server else {
      setInterest(&passage.client, EPOLLIN.rawValue, UInt64(passage.number) << 1)
      return setTimer(passage)
    }
    if passage.client.hasEnded, server.outgoing.isEmpty, !server.isShut {
      server.isShut = true
      shutdown(server.descriptor, Int32(SHUT_WR))
    }
    if server.hasEnded, passage.client.outgoing.isEmpty, !passage.client.isShut {
      passage.client.isShut = true
      shutdown(passage.client.descriptor, Int32(SHUT_WR))
    }
    passage.server = server
    if passage.isOver { return end(passage, byReset: false) }
    let tag = UInt64(passage.number) << 1
    setInterest(&passage.client, events(passage, passage.client, server), tag)
    setInterest(&server, events(passage, server, passage.client), tag + 1)
    passage.server = server
    setTimer(passage)
  }

  private func events(_ passage: Passage, _ side: Passage.Side, _ other: Passage.Side) -> UInt32 {
    (passage.wantsRead(from: side, to: other) ? EPOLLIN.rawValue : 0)
      | (passage.wantsWrite(to: side) ? EPOLLOUT.rawValue : 0)
  }

  private func setInterest(_ side: inout Passage.Side, _ events: UInt32, _ tag: UInt64) {
    guard side.interest != events else { return }
    watch(side.descriptor, events, tag, isNew: side.interest == nil)
    side.interest = events
  }

  private func watch(_ descriptor: Int32, _ events: UInt32, _ tag: UInt64, isNew: Bool) {
    var event = epoll_event(events: events, data: epoll_data(u64: tag))
    epoll_ctl(poller, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event)
  }

  // MARK: Faults and time

  private func setTimer(_ passage: Passage) {
    if passage.stalledUntil != nil || passage.faultTime != nil {
      timed.insert(passage.number)
    } else {
      timed.remove(passage.number)
    }
  }

  /// - Returns: whether the passage ended, or passes no bytes for now.
  private func injectIfDue(_ passage: Passage) -> Bool {
    guard passage.faultBytesCame else { return false }
    inject(passage)
    return passages[passage.number] == nil || passage.stalledUntil != nil
  }

  private func inject(_ passage: Passage) {
    guard let fault = passage.fault else { return }
    passage.fault = nil
    guard state.injects.withLock({ $0 }) else { return }
    switch fault.action {
    case .reset:
      count { $0.resets += 1 }
      end(passage, byReset: true)
    case .close:
      count { $0.closes += 1 }
      end(passage, byReset: false)
    case .stall(let time):
      count { $0.stalls += 1 }
      passage.stalledUntil = clock.now() + time
    }
  }

  private func passTime() {
    guard !timed.isEmpty else { return }
    let now = clock.now()
    for passage in timed.compactMap({ passages[$0] }) {
      if let end = passage.stalledUntil {
        if end <= now { passage.stalledUntil = nil }
      } else if let due = passage.faultTime, due <= now {
        inject(passage)
      }
      if passages[passage.number] != nil { update(passage) }
    }
  }

  /// The time until the next due passage in milliseconds, rounded up.
  private func timeout() -> Int32 {
    let due = timed.lazy.compactMap { [passages] in passages[$0] }.compactMap {
      $0.stalledUntil ?? $0.faultTime
    }
    .min()
    guard let due else { return -1 }
    return Int32(clamping: max(0, (due - clock.now()).nanoseconds + 999_999) / 1_000_000)
  }

  private func end(_ passage: Passage, byReset: Bool) {
    guard passages.removeValue(forKey: passage.number) != nil else { return }
    timed.remove(passage.number)
    passage.close(byReset: byReset)
    count { $0.open -= 1 }
  }

  private func count(_ change: (inout Splice.Figures) -> Void) { state.figures.withLock { change(&$0) } }
}
