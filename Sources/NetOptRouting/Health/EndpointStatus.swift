package import NetOptCore

/// The planner's knowledge of a listed endpoint.
package struct EndpointStatus: Hashable, Sendable {
  /// The endpoint as the list describes it.
  package let endpoint: ListedEndpoint
  /// The endpoint's place in the order, from 1; `nil` when plans exclude the endpoint.
  package let rank: Int?
  /// The time by which plans rank the endpoint: its smoothed time to be ready, the extra time until its
  /// responses begin, and penalties; `nil` without measurements and penalties.
  package let score: Duration?
  /// The smoothed round-trip time, from TCP handshakes and ICMP echo requests.
  package let rtt: Duration?
  /// The state of the endpoint: whether requests use it.
  package let state: CircuitState
  /// Whether the endpoint has rank 1. With the policies `fastest` and `pinned`, a request would then try this
  /// endpoint first.
  package let chosen: Bool
  /// Why plans exclude the endpoint; `nil` when they do not.
  package let excluded: ExclusionReason?
  /// The last failure, however long ago; `nil` when there was none.
  package let lastFailure: LegFailure?
}
