package import NetOptCore
import NetOptLocking
import NetOptTestSupport

/// A TCP proxy that lets several servers share one address and port, and injects faults.
///
/// The splice selects the server by the server name in the ClientHello. When a name has several servers,
/// successive connections with this name go to them in turn. One thread does all the work.
package final class Splice: Sendable {
  /// An endpoint at which the splice accepts connections, and the servers behind it.
  package struct Frontend: Sendable {
    /// The endpoint on which the frontend listens.
    package let endpoint: IPEndpoint
    /// The servers for each TLS server name. With the single entry `""`, the splice does not read the
    /// ClientHello and accepts any protocol.
    package let servers: [String: [IPEndpoint]]

    package init(_ endpoint: IPEndpoint, _ servers: [String: [IPEndpoint]]) {
      self.endpoint = endpoint
      self.servers = servers
    }

    /// Whether the server depends on the server name.
    var readsHello: Bool { servers.count != 1 || servers[""] == nil }
  }

  /// What the splice has done so far.
  package struct Figures: Sendable {
    /// The number of connections that were accepted.
    package var connections = 0
    /// The number of connections that are open now.
    package var open = 0
    /// The number of connections without a working server: the name was unknown, or the server did not accept
    /// the connection.
    package var refused = 0
    /// The number of injected resets.
    package var resets = 0
    /// The number of injected closes.
    package var closes = 0
    /// The number of injected stalls.
    package var stalls = 0
  }

  /// Ends the loop of the thread.
  private let stopped: StopSignal
  private let state: SpliceState
  /// Runs the loop (`SpliceLoop`).
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

  /// Turns the injection of faults on or off. A connection gets no fault if it is accepted while the
  /// injection is off, or if its fault is due then. Default: on.
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
  /// Whether faults are injected.
  let injects = Locked(true)
  /// Returns the fault of a connection by its number.
  let fault: @Sendable (Int) -> SpliceFault?

  init(_ fault: @escaping @Sendable (Int) -> SpliceFault?) { self.fault = fault }
}
