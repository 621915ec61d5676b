public import NetOptCore

/// What a planner knows of an endpoint of the list.
public struct EndpointStatus: Hashable, Sendable {
  /// The endpoint, as the list has it.
  public let endpoint: ListedEndpoint
  /// Its place, from 1; `nil` when it is left out.
  public let rank: Int?
  /// What it is weighed with: its smoothed time to be ready plus penalties; `nil` without history.
  public let score: Duration?
  /// The smoothed time of its TCP handshake.
  public let rtt: Duration?
  /// Whether it is used.
  public let state: CircuitState
  /// Whether a request would go to it now.
  public let chosen: Bool
  /// Why it is left out, or `nil` when it is not.
  public let excluded: String?
  /// What happened when it last failed, be that long ago.
  public let lastFailure: LegFailure?
}
