import Glibc
import NetOptCore
import NetOptLocking
import NetOptTestSupport

/// The application behind both nginx servers of the storm. It responds as the target of the request says
/// (`AnswerPlan`), and reports each arrival to the ledger.
///
/// Each connection has a thread of its own, which uses blocking calls. nginx keeps few connections to the
/// backend.
final class Backend: Sendable {
  private struct State {
    /// The threads of the open connections, by the descriptor of the connection.
    var connections: [Int32: JoinableThread] = [:]
    /// The threads whose connection has ended. They must still be joined.
    var ended: [JoinableThread] = []
  }

  /// The endpoint on which the backend listens.
  let endpoint: IPEndpoint
  private let ledger: Ledger
  /// The listening socket.
  private let listener: Int32
  private let stopped: StopSignal
  private let state = Locked(State())
  /// The thread that accepts connections; `nil` after `stop`.
  private let acceptor = Locked<JoinableThread?>(nil)

  /// Starts the backend at an address, on a port that the system chooses.
  init(on address: IPAddress, _ ledger: Ledger) throws {
    self.ledger = ledger
    stopped = try StopSignal()
    listener = try LoopbackSocket.listening(on: IPEndpoint(address, port: 0))
    endpoint = IPEndpoint(address, port: LoopbackSocket.port(of: listener))
    let thread = try JoinableThread { [unowned self] in accept() }
    acceptor.withLock { $0 = thread }
  }

  /// Closes all connections, and returns when all threads have ended. May be called again.
  func stop() {
    stopped.raise()
    guard let acceptor = acceptor.withLock({ $0.take() }) else { return }
    acceptor.join()
    close(listener)
    let threads = state.withLock { state in
      for descriptor in state.connections.keys { shutdown(descriptor, Int32(SHUT_RDWR)) }
      return Array(state.connections.values)
    }
    for thread in threads { thread.join() }
    for thread in state.withLock({ $0.ended }) { thread.join() }
  }

  /// The loop of the accepting thread. Returns after `stop`.
  private func accept() {
    while true {
      var descriptors = [stopped.descriptor, listener].map {
        pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
      }
      poll(&descriptors, 2, -1)
      if descriptors[0].revents != 0 { return }
      let descriptor = Glibc.accept(listener, nil, nil)
      guard descriptor >= 0 else { continue }
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      var yes: Int32 = 1
      setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
      serve(descriptor)
    }
  }

  /// Starts the thread of a new connection. Joins the threads of ended connections first.
  private func serve(_ descriptor: Int32) {
    let joinable = state.withLock { state in
      defer { state.ended = [] }
      return state.ended
    }
    for thread in joinable { thread.join() }
    // The new thread waits for the lock until it is registered.
    state.withLock { state in
      let thread = try? JoinableThread { [unowned self] in
        let connection = BackendConnection(descriptor)
        let isBroken = (try? exchange(over: connection)) == nil
        ended(descriptor, byReset: isBroken)
      }
      if let thread { state.connections[descriptor] = thread } else { close(descriptor) }
    }
  }

  /// Closes a connection, and notes that its thread ends.
  ///
  /// - Parameter byReset: whether to close the connection with a TCP reset.
  private func ended(_ descriptor: Int32, byReset: Bool) {
    state.withLock { state in
      if let thread = state.connections.removeValue(forKey: descriptor) { state.ended.append(thread) }
      if byReset { LoopbackSocket.reset(descriptor) } else { close(descriptor) }
    }
  }

  /// Reads requests and responds to them until nginx closes the connection. Throws when the connection
  /// breaks, and when the plan of a response breaks it.
  private func exchange(over connection: BackendConnection) throws {
    while let head = try connection.readHead() {
      guard let request = BackendRequest(head), let index = request.index,
        let plan = AnswerPlan(target: request.target)
      else {
        // The request does not belong to the storm. Each request of the storm has an index, and a target that
        // encodes an `AnswerPlan`.
        try connection.write("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".utf8)
        continue
      }
      ledger.reached(index, request.method, front: request["x-front"] ?? "")
      let answer = BackendAnswer(request, index, plan, ledger)
      if plan.isEarly {
        try answer.sendHead(over: connection, received: nil)
        let body = try request.readBody(from: connection)
        ledger.uploaded(index, body, target: request.target)
      } else {
        let body = try request.readBody(from: connection)
        ledger.uploaded(index, body, target: request.target)
        if plan.delay > 0 { usleep(UInt32(plan.delay) * 1000) }
        try answer.sendHead(over: connection, received: body.count)
      }
      try answer.sendBody(over: connection)
    }
  }
}
