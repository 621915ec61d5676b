import Glibc
import NetOptCore
import NetOptLocking

/// The state that the threads of a `LoopbackServer` share.
final class LoopbackCore: Sendable {
  /// What the server has observed, and the descriptors and threads that it must release at its end.
  struct Record {
    /// The bytes that each connection received, at most the first `mostKept`. Connection 1 is at index 0.
    var received: [[UInt8]] = []
    /// The requests in the order in which their heads arrived.
    var requests: [LoopbackRequest] = []
    /// The number of accepted connections that the server has not closed.
    var open = 0
    /// The descriptors that stay open until `finish`: the listening socket, and the connections of a black
    /// hole.
    var kept: [Int32] = []
    /// The threads that serve connections, one for each connection. `finish` joins them.
    var threads: [JoinableThread] = []
  }

  /// The maximum number of received bytes that the record keeps for each connection.
  static let mostKept = 65_536

  let behaviour: LoopbackServer.Behaviour
  /// The signal that the server raises when it stops. All threads of the server wait for it in poll(2).
  let stopped: StopSignal
  let record: Locked<Record>

  /// The descriptor of the listening socket.
  private let listener: Int32

  init(_ behaviour: LoopbackServer.Behaviour, listener: Int32, stopped: StopSignal) {
    self.behaviour = behaviour
    self.listener = listener
    self.stopped = stopped
    record = Locked(Record(kept: [listener]))
  }

  /// Keeps descriptors open until `finish` closes them.
  func keep(_ descriptors: [Int32]) { record.withLock { $0.kept += descriptors } }

  /// Joins the threads of the connections and closes the kept descriptors. Call this after the acceptor has
  /// ended.
  func finish() {
    let (threads, kept) = record.withLock { record in
      defer {
        record.threads = []
        record.kept = []
      }
      return (record.threads, record.kept)
    }
    threads.forEach { $0.join() }
    kept.forEach { close($0) }
  }

  /// Accepts connections until the server stops. Runs on the thread of the acceptor.
  func accept() {
    while true {
      var descriptors = [
        pollfd(fd: stopped.descriptor, events: Int16(POLLIN), revents: 0),
        pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
      ]
      LoopbackSocket.wait(&descriptors)
      if descriptors[0].revents != 0 { return }
      let descriptor = Glibc.accept(listener, nil, nil)
      // accept(2) fails if the client has already closed the connection, or if there is no free descriptor. In
      // the second case poll(2) would report the connection again at once.
      guard descriptor >= 0 else {
        let error = errno
        var stop = [pollfd(fd: stopped.descriptor, events: Int16(POLLIN), revents: 0)]
        if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error) {
          LoopbackSocket.wait(&stop, limit: .milliseconds(10))
        }
        continue
      }
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
      let number = record.withLock { record in
        record.received.append([])
        record.open += 1
        return record.received.count
      }
      let connection = LoopbackConnection(descriptor, number: number, core: self)
      do {
        let thread = try JoinableThread { [self] in serve(connection) }
        record.withLock { $0.threads.append(thread) }
      } catch {
        connection.close()
      }
    }
  }

  /// Serves one connection. Runs on the thread of the connection.
  private func serve(_ connection: LoopbackConnection) {
    defer { connection.close() }
    do {
      switch behaviour {
      case .silent, .blackHole: break
      case .resetting:
        _ = try connection.read()
        connection.reset()
      case .closing: connection.shutDownSending()
      case .greeting(let bytes): try connection.write(bytes)
      case .raw(let handler): try LoopbackExchange.serve(connection, with: handler)
      }
      try connection.waitForClose()
    } catch {
      // The client closed the connection, the server stops, or the handler threw an error to close the
      // connection.
    }
  }
}
