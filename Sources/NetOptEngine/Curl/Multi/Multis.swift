import CCurl
import NetOptCore

/// The multi handle that takes new work, and those before it on which something still runs.
///
/// Unchecked sendable: confined to the loop, but for being made.
///
/// libcurl 7.88 has no way to say that the connections it keeps lead through a network that is gone. It keeps them by multi
/// handle; so new work goes to a new one, and the old one ends when the last of its work has.
final class Multis: @unchecked Sendable {
  private(set) var current: CurlMulti
  private var retired: [CurlMulti] = []
  private let loop: EventLoop

  /// - Throws: as `CurlMulti`.
  init(
    _ configuration: CurlConfiguration, legs: any LegSource, waits: (any WaitObserver)?, loop: EventLoop
  ) throws(NetOptError) {
    self.loop = loop
    current = try CurlMulti(configuration, legs: legs, waits: waits, loop: loop)
  }

  /// Has new work go to new connections. What is under way goes on; who only waits for the outcome of a race, which may take its
  /// time in a network that is gone, goes on as new work.
  func renew() {
    let old = current
    let isShutDown = old.assumeIsolated { $0.isShutDown }
    // Without memory for another handle there is the old one.
    guard !isShutDown,
      let new = try? CurlMulti(old.configuration, legs: old.legs, waits: old.waits, loop: loop)
    else { return }
    current = new
    retired.removeAll { $0.assumeIsolated { $0.isShutDown } }
    retired.append(old)
    for waiting in old.assumeIsolated({ $0.retire() }) { waiting.run() }
  }

  /// Fails what is under way and closes everything.
  func shutDown() {
    for multi in retired + [current] { multi.assumeIsolated { $0.shutDown() } }
    retired = []
  }
}
