import CCurl
import NetOptCore
import NetOptLocking

/// One multi handle for each generation of the network: the current handle takes new work, and older handles
/// end the work that is still under way on them.
///
/// Unchecked sendable: confined to the loop, except for its initialization.
///
/// A program cannot tell libcurl 7.88 that the connections in its pool lead through a network that is gone.
/// Each multi handle has its own pool. So new work goes to a new handle, and the old handle ends when its
/// last work has ended.
final class NetworkGenerations: @unchecked Sendable {
  /// The multi handle that takes new work.
  private(set) var current: CurlMulti
  /// The older multi handles. Those that have ended are removed by the next `renew`.
  private var retired: [CurlMulti] = []
  private let loop: EventLoop
  private let counter: TransportCounter
  /// Those who wait for the end of all work.
  private var drains: [FirstValue<Void>] = []

  /// - Throws: the errors of `CurlMulti.init`.
  init(
    _ configuration: CurlConfiguration, _ tls: ClientTLS, legs: any LegSource,
    waitObserver: (any WaitObserver)?, counter: TransportCounter, loop: EventLoop
  ) throws(NetOptError) {
    self.loop = loop
    self.counter = counter
    current = try CurlMulti(
      configuration, tls, legs: legs, waitObserver: waitObserver, counter: counter, loop: loop)
  }

  /// Makes new work use new connections. Work that is under way continues on the old connections. Calls that
  /// only wait for another call's race continue as new work, because that race may take long in a network
  /// that is gone.
  func renew() {
    let old = current
    let isShutDown = old.assumeIsolated { $0.isShutDown }
    // If no further handle can be made, the old handle stays in use.
    guard !isShutDown,
      let new = try? CurlMulti(
        old.configuration, old.tls, legs: old.legs, waitObserver: old.waitObserver,
        counter: counter, loop: loop)
    else { return }
    current = new
    retired.removeAll { $0.assumeIsolated { $0.isShutDown } }
    retired.append(old)
    if !drains.isEmpty { endDrains() }
    for waiting in old.assumeIsolated({ $0.retire() }) { waiting.run() }
  }

  /// Replaces the TLS settings of all hosts.
  func setTLS(_ usual: TLSSettings, _ hosts: [String: TLSSettings]) { current.tls.set(usual, hosts) }

  /// Replaces the pins of the IP list.
  func setPins(_ pins: [String: [PublicKeyPin]]) { current.tls.setPins(pins) }

  /// Ends a wait when no work is under way.
  func drain(_ waiter: FirstValue<Void>) {
    drains.append(waiter)
    endDrains()
  }

  /// Ends the waits for the end of all work, if there is none.
  private func endDrains() {
    let multis = retired + [current]
    guard multis.allSatisfy({ $0.assumeIsolated { $0.isIdle } }) else {
      // The last exchange of any handle leads here again.
      for multi in multis { multi.assumeIsolated { $0.onIdle = { [weak self] in self?.endDrains() } } }
      return
    }
    for waiter in drains { waiter.set(()) }
    drains = []
  }

  /// Fails the work under way and closes everything.
  func shutDown() {
    for multi in retired + [current] { multi.assumeIsolated { $0.shutDown() } }
    retired = []
  }
}
