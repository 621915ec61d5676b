package import NetOptCore

/// What the planner knows about a listed endpoint at one moment, in the form for callers of the planner.
package struct EndpointStatus: Hashable, Sendable {
  /// The endpoint as the list describes it.
  package let endpoint: ListedEndpoint
  /// The endpoint's place in the order, from 1; `nil` when plans exclude the endpoint.
  package let rank: Int?
  /// The time by which plans rank the endpoint, the lowest first. It is the sum of three times: the smoothed
  /// time from the start of a connection attempt until the connection can carry a request (the TCP handshake
  /// and, for `https`, the TLS handshake), the time by which responses of the endpoint begin later than usual
  /// for the origin, and the penalties for recent failures. `nil` without measurements and penalties.
  package let score: Duration?
  /// The smoothed round-trip time, from TCP handshakes and ICMP echo requests; `nil` before the first
  /// measurement.
  package let rtt: Duration?
  /// The state of the endpoint: whether requests use it.
  package let state: CircuitState
  /// Whether the endpoint has rank 1. With the policies `fastest` and `pinned`, the next request would try
  /// this endpoint first.
  package let chosen: Bool
  /// Why plans exclude the endpoint; `nil` when they do not.
  package let excluded: ExclusionReason?
  /// When the endpoint, which worked until then, was first avoided: its circuit breaker opened, or its
  /// quarantine began. `nil` when neither holds. In the half-open state and while a last resort is tried, it
  /// still has a value.
  package let avoidedSince: MonotonicInstant?
  /// The last failure in the current network, however long ago; `nil` when there was none. A success does not
  /// clear it.
  package let lastFailure: LegFailure?
  /// When `lastFailure` occurred.
  package let lastFailed: MonotonicInstant?
  /// What requests and probes have met with, over http and https together.
  package internal(set) var counts: EndpointCounts
}
