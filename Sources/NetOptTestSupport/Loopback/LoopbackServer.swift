import Glibc
public import NetOptCore
import Synchronization

/// A small TCP server that behaves as a test wants. It runs on threads of its own, so that nothing a test does can
/// hold it up. An endpoint that refuses needs no server: take a port from `FreePort`.
public final class LoopbackServer: Sendable {
  /// What becomes of a connection.
  public enum Behaviour: Sendable {
    /// It is accepted and read from, and never gets an answer.
    case silent
    /// It does not come about: the queue of the listening socket is full, so the kernel drops further SYNs.
    case blackHole
    /// It is accepted, and the server's direction is shut down at once: the client reads an orderly end.
    case closing
    /// It is accepted, and reset when the client's first bytes are there. (A reset before that may look like a
    /// refused connection to the client, or not: that depends on who is faster.)
    case resetting
    /// It gets these bytes at once, whatever the client sends, and then silence.
    case greeting([UInt8])
    /// Each HTTP/1 request that arrives is handed to the closure, on the connection's thread. The connection goes on
    /// to the next request until the closure or the client closes it; an error that the closure throws closes it.
    case raw(@Sendable (LoopbackExchange) throws -> Void)
  }

  /// Where it listens.
  public let endpoint: IPEndpoint
  private let core: LoopbackCore
  private let acceptor: JoinableThread?

  /// Starts a server; from here on it answers.
  ///
  /// - Parameters:
  ///   - behaviour: what becomes of connections.
  ///   - address: the loopback address that it listens on. Default: 127.0.0.1.
  ///   - port: the port; by default the system chooses one.
  /// - Throws: `TestSupportError` when the address is taken or none of this machine, and when a black hole could not
  ///   be made.
  public init(_ behaviour: Behaviour, on address: IPAddress = .loopback, port: UInt16 = 0) throws {
    let isBlackHole = if case .blackHole = behaviour { true } else { false }
    let listener = try LoopbackSocket.listening(
      on: IPEndpoint(address, port: port), backlog: isBlackHole ? 0 : 512)
    endpoint = IPEndpoint(address, port: port == 0 ? LoopbackSocket.port(of: listener) : port)
    do {
      core = LoopbackCore(behaviour, listener: listener, stopped: try StopSignal())
      if isBlackHole {
        core.keep(try BlackHole.fill(endpoint))
        acceptor = nil
      } else {
        acceptor = try JoinableThread { [core] in core.accept() }
      }
    } catch {
      close(listener)
      throw error
    }
  }

  deinit { stop() }

  /// How many connections were accepted.
  public var connections: Int { core.record.withLock { $0.received.count } }

  /// The requests whose heads arrived (`raw` alone), in that order.
  public var requests: [LoopbackRequest] { core.record.withLock { $0.requests } }

  /// What came in on each connection, byte for byte, the first 64 KiB of it.
  public var received: [[UInt8]] { core.record.withLock { $0.received } }

  /// How many connections are open now.
  public var openConnections: Int { core.record.withLock { $0.open } }

  /// Closes everything and returns when no thread and no descriptor is left. May be called again.
  public func stop() {
    core.stopped.raise()
    acceptor?.join()
    core.finish()
  }
}
