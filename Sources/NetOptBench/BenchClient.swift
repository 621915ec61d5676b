package import NetOptCore

/// What a run needs of a client, so that a test can put a client of its own in its place.
package protocol BenchClient: Sendable {
  /// Sends a request and returns when the head of the response is there.
  func execute(_ request: HTTPRequest) async throws(NetOptError) -> HTTPResponse

  /// Looks a name up; `fresh` passes cached answers over.
  func resolve(_ host: String, fresh: Bool) async throws(NetOptError) -> ResolvedAddresses

  /// Probes the list's endpoints of a host as a client does when it starts.
  ///
  /// - Returns: the endpoint that a request would go to first, or `nil` when there is none.
  func startUpChoice(for host: String) async throws(NetOptError) -> IPAddress?
}
