import NetOptCore
import NetOptEngine

/// Adapts a client when this machine has joined another network. Rankings, connections and DNS results belong
/// to one network, so the client starts anew with them. Running transfers continue.
struct NetworkTransition: Sendable {
  let transport: any Transport
  let resolver: any Resolver
  let ranking: RankingMemory
  let prober: Prober
  let retries: Retries

  /// Performs the transition to a network. May be called on any thread. Reads a saved ranking in a separate
  /// task, because reading a file would block the event loop.
  func perform(_ network: NetworkFingerprint) {
    transport.networkChanged()
    resolver.networkChanged()
    let known = ranking.networkChanged(to: network)
    retries.networkChanged()
    // When memory has the ranking of the network, the next request is already planned with it.
    if let known { return prober.probeAgain(known: known) }
    // Reading a file would block the event loop.
    Task { prober.probeAgain(known: ranking.restore()) }
  }
}
