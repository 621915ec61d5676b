import Glibc
import NetOptCore
import Synchronization

/// A connection that a `LoopbackServer` accepted. Each call blocks until it has finished, and throws
/// `Stopped` when the server stops.
///
/// `@unchecked Sendable`: the acceptor creates the connection and passes it to the connection's thread. From
/// then on, only this thread uses the connection.
final class LoopbackConnection: @unchecked Sendable {
  /// The error that blocking calls throw when the server stops.
  struct Stopped: Error {}

  /// The number of the connection in the order of acceptance, from 1.
  let number: Int
  /// The number of requests that were read from this connection so far.
  var requests = 0

  /// The descriptor of the socket; `nil` when the connection is closed.
  private var descriptor: Int32?
  /// The state that the threads of the server share.
  private let core: LoopbackCore
  /// The bytes that were received from the client and that no `read` has returned yet.
  private var pending: [UInt8] = []

  init(_ descriptor: Int32, number: Int, core: LoopbackCore) {
    self.descriptor = descriptor
    self.number = number
    self.core = core
  }

  /// Whether the server still has the connection open. The client may have closed its side.
  var isOpen: Bool { descriptor != nil }

  /// Adds a request to the record of the server.
  func note(_ request: LoopbackRequest) { core.record.withLock { $0.requests.append(request) } }

  /// Returns the next bytes from the client, at most `limit`. Waits if none have arrived. Returns no bytes
  /// when the client has closed its sending direction.
  func read(upTo limit: Int = .max) throws -> [UInt8] {
    if pending.isEmpty { pending = try receive() }
    let chunk = Array(pending.prefix(limit))
    pending.removeFirst(chunk.count)
    return chunk
  }

  /// Returns the next bytes up to and including the sequence `end`. If the client closes the connection
  /// before `end` arrives, returns the bytes that have arrived.
  func read(through end: [UInt8]) throws -> [UInt8] {
    var bytes = pending
    pending = []
    var searched = 0
    while true {
      if let range = bytes[searched...].firstRange(of: end) {
        pending = Array(bytes[range.upperBound...])
        return Array(bytes[..<range.upperBound])
      }
      searched = max(0, bytes.count - end.count)
      let more = try receive()
      if more.isEmpty { return bytes }
      bytes += more
    }
  }

  /// Sends all bytes. Waits while the send buffer of the socket is full.
  func write(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      guard let descriptor else { throw systemError("the connection is closed", code: EPIPE) }
      try wait(for: POLLOUT)
      let sent = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if sent < 0, errno == EAGAIN || errno == EINTR { continue }
      guard sent > 0 else { throw systemError("the client went away") }
      rest = rest.dropFirst(sent)
    }
  }

  /// Waits for a duration. Does not look at the connection: the client may close it meanwhile.
  func wait(_ duration: Duration) throws {
    var descriptors = [pollfd(fd: core.stopped.descriptor, events: Int16(POLLIN), revents: 0)]
    if LoopbackSocket.wait(&descriptors, limit: duration) > 0 { throw Stopped() }
  }

  /// Reads and discards bytes until the client closes the connection.
  func waitForClose() throws {
    while isOpen, !(try read().isEmpty) {}
  }

  /// Shuts down the sending direction. The client can still send.
  func shutDownSending() {
    if let descriptor { shutdown(descriptor, Int32(SHUT_WR)) }
  }

  /// Closes the connection.
  func close() { end { _ = Glibc.close($0) } }

  /// Closes the connection with a reset (RST).
  func reset() { end(LoopbackSocket.reset) }

  /// Ends the connection. Does nothing if the connection is already closed.
  ///
  /// - Parameter how: a function that closes the descriptor, in an orderly way or with a reset.
  private func end(_ how: (Int32) -> Void) {
    guard let open = descriptor else { return }
    descriptor = nil
    how(open)
    core.record.withLock { $0.open -= 1 }
  }

  /// Waits for bytes from the client and returns them, at most 64 KiB. Returns no bytes when the client or
  /// the server has closed the connection. Adds the bytes to the record of the server.
  private func receive() throws -> [UInt8] {
    while let descriptor {
      try wait(for: POLLIN)
      var failure: Int32 = 0
      let chunk = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
        let got = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        failure = got < 0 ? errno : 0
        count = max(0, got)
      }
      if failure == EAGAIN || failure == EINTR { continue }
      guard failure == 0 else { throw systemError("the client went away", code: failure) }
      core.record.withLock { record in
        let room = LoopbackCore.mostKept - record.received[number - 1].count
        record.received[number - 1] += chunk.prefix(room)
      }
      return chunk
    }
    return []
  }

  /// Waits until poll(2) reports the event for the socket, and throws `Stopped` if the server stops first.
  /// Returns at once if the connection is closed.
  private func wait(for event: Int32) throws {
    guard let descriptor else { return }
    var descriptors = [
      pollfd(fd: core.stopped.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: descriptor, events: Int16(event), revents: 0),
    ]
    LoopbackSocket.wait(&descriptors)
    if descriptors[0].revents != 0 { throw Stopped() }
  }
}
