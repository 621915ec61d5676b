package import NetOptCore

/// The client operations that a run uses. A test can provide its own implementation.
package protocol BenchClient: Sendable {
  /// Sends a request and returns when the response header has arrived.
  func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse

  /// Resolves a host name. With `fresh`, the client ignores cached DNS answers.
  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses

  /// Probes the endpoints that the list has for a host, as a client does when it starts.
  func startUpChoice(for host: String) async throws(NetOptError) -> StartUpChoice

  /// The task executor on which tasks that mostly send requests cost least, or `nil` for the default executor
  /// of the concurrency runtime.
  var executor: (any TaskExecutor)? { get }
}

extension BenchClient {
  /// `nil`: the default executor of the concurrency runtime.
  package var executor: (any TaskExecutor)? { nil }
}

/// The result of a client's start-up probe.
package struct StartUpChoice: Hashable, Sendable {
  /// The endpoint that the client would use first for a request, or `nil` when there is none.
  package var chosen: IPAddress?
  /// The endpoints that the probe found, the best first.
  package var ranking: [IPAddress]

  /// Describes a choice.
  package init(chosen: IPAddress?, ranking: [IPAddress] = []) {
    self.chosen = chosen
    self.ranking = ranking
  }
}
