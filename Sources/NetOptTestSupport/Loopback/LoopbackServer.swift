import Glibc
public import NetOptCore
import Synchronization

/// A small TCP server with a behaviour that the test selects. The server has its own threads, so a busy task
/// pool does not delay it. For an endpoint that refuses connections, no server is necessary: use a port from
/// `FreePort`.
public final class LoopbackServer: Sendable {
  /// What the server does with each connection.
  public enum Behaviour: Sendable {
    /// Accepts the connection and reads from it, but never responds.
    case silent
    /// Never establishes the connection: the accept queue of the listening socket is full, so the kernel
    /// drops further SYNs.
    case blackHole
    /// Accepts the connection and shuts down the sending direction at once. The client reads the end of the
    /// stream, not a reset.
    case closing
    /// Accepts the connection and resets it when the first bytes of the client arrive. An earlier reset could
    /// arrive during the handshake, and the client might then see a refused connection.
    case resetting
    /// Sends these bytes at once, without waiting for the client, and then nothing more.
    case greeting([UInt8])
    /// Reads HTTP/1 requests and calls the closure for each, on the thread of the connection, until the
    /// closure or the client closes the connection. When the closure throws an error, the server closes the
    /// connection.
    case raw(@Sendable (LoopbackExchange) throws -> Void)
  }

  /// The endpoint that the server listens on.
  public let endpoint: IPEndpoint
  /// The state that the threads of the server share.
  private let core: LoopbackCore
  /// The thread that accepts connections; `nil` for a black hole.
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

  /// The number of connections accepted so far, including closed ones.
  public var connections: Int { core.record.withLock { $0.received.count } }

  /// The requests in the order in which their heads arrived; empty for every behaviour except `raw`.
  public var requests: [LoopbackRequest] { core.record.withLock { $0.requests } }

  /// The bytes that each connection received, at most the first 64 KiB, in the order of acceptance.
  public var received: [[UInt8]] { core.record.withLock { $0.received } }

  /// The number of accepted connections that the server has not closed.
  public var openConnections: Int { core.record.withLock { $0.open } }

  /// Stops the server: closes all its connections and its listening socket. Returns when all threads have
  /// ended and all descriptors are closed. May be called again.
  public func stop() {
    core.stopped.raise()
    acceptor?.join()
    core.finish()
  }
}
