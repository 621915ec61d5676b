package import NetOptCore

/// The operations of a client that a run uses. Tests pass their own implementation.
package protocol BenchClient: Sendable {
  /// Sends a request. Returns when the head of the response has arrived; the body follows.
  func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse

  /// Resolves a host name.
  ///
  /// - Parameter fresh: whether the client ignores cached DNS answers.
  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses

  /// Probes the endpoints of a host in the list, as a client does when it starts, and returns which endpoint
  /// the client would use.
  func startUpChoice(for host: String) async throws(NetOptError) -> StartUpChoice

  /// The task executor of the client's event loop. A task that sends many requests costs the least on it,
  /// because no request then changes threads. `nil` for the default executor of the concurrency runtime.
  var executor: (any TaskExecutor)? { get }
}

extension BenchClient {
  /// `nil`: the default executor of the concurrency runtime.
  package var executor: (any TaskExecutor)? { nil }
}

/// The result of a client's start-up probe.
package struct StartUpChoice: Hashable, Sendable {
  /// The address that the client would use first for a request; `nil` when no endpoint of the list is usable.
  package var chosen: IPAddress?
  /// The addresses of the endpoints that answered the probe, the best first.
  package var ranking: [IPAddress]

  /// Describes a choice.
  package init(chosen: IPAddress?, ranking: [IPAddress] = []) {
    self.chosen = chosen
    self.ranking = ranking
  }
}
