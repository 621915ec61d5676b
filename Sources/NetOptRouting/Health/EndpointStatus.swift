package import NetOptCore

/// What a planner knows of an endpoint of the list.
package struct EndpointStatus: Hashable, Sendable {
  /// The endpoint, as the list has it.
  package let endpoint: ListedEndpoint
  /// Its place, from 1; `nil` when it is left out.
  package let rank: Int?
  /// What it is weighed with: its smoothed time to be ready plus penalties; `nil` without history.
  package let score: Duration?
  /// The smoothed time of its TCP handshake.
  package let rtt: Duration?
  /// Whether it is used.
  package let state: CircuitState
  /// Whether a request would go to it now.
  package let chosen: Bool
  /// Why it is left out, or `nil` when it is not.
  package let excluded: ExclusionReason?
  /// What happened when it last failed, be that long ago.
  package let lastFailure: LegFailure?
}
