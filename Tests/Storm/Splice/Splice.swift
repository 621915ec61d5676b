package import NetOptCore
import NetOptLocking
import NetOptTestSupport

/// A TCP proxy that lets several servers share one address and port, and injects faults.
///
/// The splice selects the server by the server name in the ClientHello. Successive connections with the same
/// name go to the servers of that name in turn. One thread does all the work.
package final class Splice: Sendable {
  /// An address that accepts connections.
  package struct Frontend: Sendable {
    /// The endpoint on which the frontend listens.
    package let endpoint: IPEndpoint
    /// The servers by TLS server name. A frontend with the single entry `""` does not read the ClientHello
    /// and accepts any protocol.
    package let servers: [String: [IPEndpoint]]

    package init(_ endpoint: IPEndpoint, _ servers: [String: [IPEndpoint]]) {
      self.endpoint = endpoint
      self.servers = servers
    }

    /// Whether the server depends on the server name.
    var readsHello: Bool { servers.count != 1 || servers[""] == nil }
  }

  /// The figures so far.
  package struct Figures: Sendable {
    package var connections = 0
    /// The number of open connections.
    package var open = 0
    /// The number of connections without a server: the name was unknown, or the server refused.
    package var refused = 0
    package var resets = 0
    package var closes = 0
    package var stalls = 0
  }

  private let stopped: StopSignal
  private let state: SpliceState
  private let thread: JoinableThread

  /// Starts listening.
  ///
  /// - Parameters:
  ///   - frontends: the addresses that accept connections.
  ///   - fault: returns the fault of a connection by its number, counted from 0. Called on the splice's
  ///     thread. Default: none.
  /// - Throws: `TestSupportError` when an address is in use.
  package init(
    _ frontends: [Frontend], fault: @escaping @Sendable (Int) -> SpliceFault? = { _ in nil }
  ) throws {
    stopped = try StopSignal()
    state = SpliceState(fault)
    let loop = try SpliceLoop(frontends, state, stopped)
    thread = try JoinableThread { loop.run() }
  }

  deinit { stop() }

  package var figures: Figures { state.figures.withLock { $0 } }

  /// Turns the injection of faults on or off. A connection whose fault is due while the injection is off has
  /// no fault. Default: on.
  package func setFaults(_ isOn: Bool) { state.injects.withLock { $0 = isOn } }

  /// Closes all connections, and returns when no thread and no descriptor is left. May be called again.
  package func stop() {
    stopped.raise()
    thread.join()
  }
}

/// The state that the splice's thread shares with other threads.
final class SpliceState: Sendable {
  let figures = Locked(Splice.Figures())
  let injects = Locked(true)
  let fault: @Sendable (Int) -> SpliceFault?

  init(_ fault: @escaping @Sendable (Int) -> SpliceFault?) { self.fault = fault }
}
