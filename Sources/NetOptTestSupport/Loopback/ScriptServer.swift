import Glibc
package import NetOptCore
import NetOptLocking

/// A server that responds to one request per connection with prepared bytes, and then closes the connection.
/// One thread serves all connections, one after another. Unlike `LoopbackServer`, the server keeps no record
/// of its connections, so it can serve any number of them.
package final class ScriptServer: Sendable {
  /// The endpoint that the server listens on.
  package let endpoint: IPEndpoint
  /// The descriptor of the listening socket. The thread closes it.
  private let listener: Int32
  /// Raised when the server is released.
  private let stopped: StopSignal
  private let scripts = Scripts()
  /// The thread of the server; `nil` until it is started.
  private let thread = Locked<JoinableThread?>(nil)

  /// The prepared responses, which the thread and the callers share.
  private final class Scripts: Sendable {
    /// The pieces of each response, by the target of the request.
    let pieces = Locked<[String: [[UInt8]]]>([:])
  }

  /// The longest time that the server waits for the next bytes of a request.
  private static let patience = Duration.seconds(5)

  /// Starts the server on a free port of 127.0.0.1.
  package init() throws {
    stopped = try StopSignal()
    listener = try LoopbackSocket.listening(on: IPEndpoint(.loopback, port: 0))
    endpoint = IPEndpoint(.loopback, port: LoopbackSocket.port(of: listener))
    // The thread holds the descriptors but not the server, because the server's deinitializer ends the
    // thread.
    let thread = try JoinableThread { [listener, stopped, scripts] in
      while Self.wait(listener, stopped, limit: nil) {
        let descriptor = accept(listener, nil, nil)
        guard descriptor >= 0 else { continue }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        Self.serve(descriptor, scripts, stopped)
        close(descriptor)
      }
      close(listener)
    }
    self.thread.withLock { $0 = thread }
  }

  deinit {
    stopped.raise()
    thread.withLock { $0 }?.join()
  }

  /// Sets the response to the next request for a target. The server sends the pieces one by one. It uses the
  /// response only once.
  package func set(_ pieces: [[UInt8]], for target: String) {
    scripts.pieces.withLock { $0[target] = pieces }
  }

  /// Removes the response for a target, if no request has used it.
  package func forget(_ target: String) { scripts.pieces.withLock { $0[target] = nil } }

  /// Reads the head of one request and sends the response for its target. Sends nothing if there is no
  /// response.
  private static func serve(_ descriptor: Int32, _ scripts: Scripts, _ stopped: StopSignal) {
    var head: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 8192)
    while head.firstRange(of: Array("\r\n\r\n".utf8)) == nil {
      guard wait(descriptor, stopped, limit: patience) else { return }
      let count = recv(descriptor, &buffer, buffer.count, 0)
      guard count > 0 else { return }
      head += buffer[..<count]
    }
    let words = head.split(separator: 0x20, maxSplits: 2)
    let target = words.count > 1 ? String(decoding: words[1], as: UTF8.self) : ""
    for piece in scripts.pieces.withLock({ $0.removeValue(forKey: target) }) ?? [] {
      // A piece fits into the send buffer of the socket. So a short count means that the client has closed
      // the connection.
      if send(descriptor, piece, piece.count, Int32(MSG_NOSIGNAL)) < piece.count { return }
      // Lets the client's thread read the bytes that have arrived, so that the client receives separate
      // pieces. If the pieces merge, no bytes are lost.
      sched_yield()
    }
  }

  /// Waits until a descriptor is readable. Returns false when the server stops or the limit passes first.
  private static func wait(_ descriptor: Int32, _ stopped: StopSignal, limit: Duration?) -> Bool {
    var descriptors = [
      pollfd(fd: stopped.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
    ]
    return LoopbackSocket.wait(&descriptors, limit: limit) > 0 && descriptors[0].revents == 0
  }
}
