import Glibc
public import NetOptCore
import Synchronization

/// A small TCP server with a behaviour that the test selects. The server has its own threads, so a test
/// cannot delay it. For an endpoint that refuses connections, no server is necessary: use a port from
/// `FreePort`.
public final class LoopbackServer: Sendable {
  /// How the server treats a connection.
  public enum Behaviour: Sendable {
    /// Accepts the connection and reads from it, but never responds.
    case silent
    /// Never establishes the connection: the accept queue of the listening socket is full, so the kernel
    /// drops further SYNs.
    case blackHole
    /// Accepts the connection and shuts down the sending direction at once. The client reads an orderly end.
    case closing
    /// Accepts the connection and resets it when the first bytes of the client arrive. (After an earlier
    /// reset, the client might see a refused connection, depending on the timing.)
    case resetting
    /// Sends these bytes at once, whatever the client sends, and then nothing more.
    case greeting([UInt8])
    /// Passes each HTTP/1 request to the closure, on the thread of the connection. Then waits for the next
    /// request, until the closure or the client closes the connection. The server closes the connection when
    /// the closure throws an error.
    case raw(@Sendable (LoopbackExchange) throws -> Void)
  }

  /// The endpoint that the server listens on.
  public let endpoint: IPEndpoint
  private let core: LoopbackCore
  private let acceptor: JoinableThread?

  /// Starts a server, which accepts connections from now on.
  ///
  /// - Parameters:
  ///   - behaviour: how the server treats connections.
  ///   - address: the loopback address to listen on. Default: 127.0.0.1.
  ///   - port: the port. Default: 0, which means that the system chooses a port.
  /// - Throws: `TestSupportError` when the address is in use or does not belong to this machine, and when the
  ///   server could not create a black hole.
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

  /// The number of accepted connections.
  public var connections: Int { core.record.withLock { $0.received.count } }

  /// The requests in the order in which their heads arrived; only for `raw`.
  public var requests: [LoopbackRequest] { core.record.withLock { $0.requests } }

  /// The received bytes of each connection, at most the first 64 KiB.
  public var received: [[UInt8]] { core.record.withLock { $0.received } }

  /// The number of open connections.
  public var openConnections: Int { core.record.withLock { $0.open } }

  /// Closes everything. Returns when all threads have ended and all descriptors are closed. May be called
  /// again.
  public func stop() {
    core.stopped.raise()
    acceptor?.join()
    core.finish()
  }
}
