import Glibc
import NetOptCore
import NetOptLocking
import NetOptTestSupport

/// The application behind every nginx of the storm. It responds as the target of the request says, and
/// reports each arrival to the ledger.
///
/// Each connection has a thread with blocking calls. nginx keeps few connections.
final class Backend: Sendable {
  private struct State {
    var connections: [Int32: JoinableThread] = [:]
    var ended: [JoinableThread] = []
  }

  let endpoint: IPEndpoint
  private let ledger: Ledger
  private let listener: Int32
  private let stopped: StopSignal
  private let state = Locked(State())
  private let acceptor = Locked<JoinableThread?>(nil)

  /// Starts the backend.
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

  private func ended(_ descriptor: Int32, byReset: Bool) {
    state.withLock { state in
      if let thread = state.connections.removeValue(forKey: descriptor) { state.ended.append(thread) }
      if byReset { LoopbackSocket.reset(descriptor) } else { close(descriptor) }
    }
  }

  private func exchange(over connection: BackendConnection) throws {
    while let head = try connection.readHead() {
      guard let request = BackendRequest(head), let index = request.index,
        let plan = AnswerPlan(target: request.target)
      else {
        // The client's probes have no id. nginx would send its own requests without an id too, but has none.
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
