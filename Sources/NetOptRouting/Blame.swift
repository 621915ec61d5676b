import NetOptCore

/// Who answers for a leg's failure.
enum Blame: Hashable, Sendable {
  /// The endpoint: it gets a penalty, and its circuit counts the failure.
  case endpoint
  /// The endpoint, whose certificate shows that it is not the host's, or that nobody vouches for it: it is put into
  /// quarantine.
  case certificate
  /// This machine's network: the endpoint comes after the others for a while, but its circuit counts nothing.
  case localNetwork
  /// Nobody that routing could avoid.
  case nobody

  /// The blame for a kind of failure.
  init(_ kind: LegFailure.Kind) {
    self =
      switch kind {
      case .refused, .connectTimeout, .tlsTimeout, .reset, .tls, .unhealthy: .endpoint
      case .certificateName, .certificateUntrusted, .certificateExpired: .certificate
      case .unreachable: .localNetwork
      case .resolve, .proxy, .other: .nobody
      }
  }
}
