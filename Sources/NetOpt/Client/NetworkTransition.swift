import NetOptCore
import NetOptEngine

/// Adapts the client to another network of the machine. Rankings, connections and responses of DNS belong to
/// one network. Running transfers continue.
struct NetworkTransition: Sendable {
  let transport: any Transport
  let resolver: any Resolver
  let ranking: RankingMemory
  let prober: Prober
  let retries: Retries

  /// Starts the transition. May be called on any thread: slow work runs in a task.
  func perform(_ network: NetworkFingerprint) {
    transport.networkChanged()
    resolver.networkChanged()
    let known = ranking.networkChanged(to: network)
    retries.networkChanged()
    // If memory has the ranking of the network, the next request is already planned with it.
    if let known { return prober.probeAgain(known: known) }
    // Reading a file would block the event loop.
    Task { prober.probeAgain(known: ranking.restore()) }
  }
}
