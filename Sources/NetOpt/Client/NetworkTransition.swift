import NetOptCore
import NetOptEngine

/// What a client does when the machine is in another network: history belongs to a network, and so do connections and what
/// name servers said. What is under way goes on.
struct NetworkTransition: Sendable {
  let transport: any Transport
  let resolver: any Resolver
  let ranking: RankingMemory
  let prober: Prober
  let retries: Retries

  /// To be called on any thread; what takes longer is done elsewhere.
  func perform(_ network: NetworkFingerprint) {
    transport.networkChanged()
    resolver.networkChanged()
    let known = ranking.networkChanged(to: network)
    retries.networkChanged()
    // What is in memory is known already when the next request is planned.
    if let known { return prober.probeAgain(known: known) }
    // Reading a file has no place on the loop.
    Task { prober.probeAgain(known: ranking.restore()) }
  }
}
