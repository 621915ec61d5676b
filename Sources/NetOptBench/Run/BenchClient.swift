package import NetOptCore

/// What a run needs of a client, so that a test can put a client of its own in its place.
package protocol BenchClient: Sendable {
  /// Sends a request and returns when the head of the response is there.
  func execute(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse

  /// Looks a name up; `fresh` passes cached answers over.
  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses

  /// Probes the list's endpoints of a host as a client does when it starts.
  func startUpChoice(for host: String) async throws(NetOptError) -> StartUpChoice

  /// What tasks that make many requests and do little else run on with the least effort, if there is something.
  var executor: (any TaskExecutor)? { get }
}

extension BenchClient {
  /// The concurrency runtime's own.
  package var executor: (any TaskExecutor)? { nil }
}

/// What a client's start-up probe found.
package struct StartUpChoice: Hashable, Sendable {
  /// The endpoint that a request would go to first, or `nil` when there is none.
  package var chosen: IPAddress?
  /// The endpoints that were found, the best first.
  package var ranking: [IPAddress]

  /// Describes a choice.
  package init(chosen: IPAddress?, ranking: [IPAddress] = []) {
    self.chosen = chosen
    self.ranking = ranking
  }
}
