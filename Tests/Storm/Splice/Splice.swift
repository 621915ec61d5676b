package import NetOptCore
import NetOptLocking
import NetOptTestSupport

/// Passes TCP connections on to servers, so that several servers share one address and port.
///
/// It picks the server by the name in the TLS hello, hands successive connections of one name to the servers of that name
/// in turn, and injects faults. One thread does all of it.
package final class Splice: Sendable {
  /// An address that connections come to.
  package struct Door: Sendable {
    /// Where it listens.
    package let endpoint: IPEndpoint
    /// The servers by TLS server name. A door with one entry, `""`, does not read the hello and takes any protocol.
    package let servers: [String: [IPEndpoint]]

    package init(_ endpoint: IPEndpoint, _ servers: [String: [IPEndpoint]]) {
      self.endpoint = endpoint
      self.servers = servers
    }

    /// Whether the server depends on the name.
    var readsHello: Bool { servers.count != 1 || servers[""] == nil }
  }

  /// What has happened so far.
  package struct Figures: Sendable {
    package var connections = 0
    /// How many connections are open now.
    package var open = 0
    /// How many connections had no server: an unknown name, or a server that refused.
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
  ///   - doors: where connections come in.
  ///   - fault: the fault of a connection by its number from 0, called on the splice's thread. Default: none.
  /// - Throws: `TestSupportError` when an address is taken.
  package init(
    _ doors: [Door], fault: @escaping @Sendable (Int) -> SpliceFault? = { _ in nil }
  ) throws {
    stopped = try StopSignal()
    state = SpliceState(fault)
    let loop = try SpliceLoop(doors, state, stopped)
    thread = try JoinableThread { loop.run() }
  }

  deinit { stop() }

  package var figures: Figures { state.figures.withLock { $0 } }

  /// Turns the injection of faults on or off. Connections whose moment comes while it is off have no fault. Default: on.
  package func setFaults(_ isOn: Bool) { state.injects.withLock { $0 = isOn } }

  /// Closes all connections, and returns when no thread and no descriptor is left. May be called again.
  package func stop() {
    stopped.raise()
    thread.join()
  }
}

/// What the splice's thread shares with others.
final class SpliceState: Sendable {
  let figures = Locked(Splice.Figures())
  let injects = Locked(true)
  let fault: @Sendable (Int) -> SpliceFault?

  init(_ fault: @escaping @Sendable (Int) -> SpliceFault?) { self.fault = fault }
}
