import NetOptCore

/// Who answers for a leg's failure.
enum Blame: Hashable, Sendable {
  /// The endpoint: it gets a penalty, and its circuit counts the failure.
  case endpoint
  /// The service behind the endpoint, which can be reached: counts half, and no connection shows that it is better.
  case service
  /// The endpoint, whose certificate shows that it is not the host's, or that nobody vouches for it: it is put into
  /// quarantine.
  case certificate
  /// This machine's network: the endpoint comes after the others for a while, but its circuit counts nothing.
  case localNetwork
  /// Nobody that routing could avoid.
  case nobody

  /// Whether nothing came back from where the leg led, so that it may be the network that does not work.
  var isOfTheWay: Bool { self == .endpoint || self == .localNetwork }

  /// The blame for a kind of failure.
  init(_ kind: LegFailure.Kind) {
    self =
      switch kind {
      case .refused, .connectTimeout, .tlsTimeout, .reset, .tls, .silent, .unhealthy: .endpoint
      case .busy: .service
      case .certificateName, .certificateUntrusted, .certificateExpired: .certificate
      case .unreachable: .localNetwork
      case .resolve, .nameNotFound, .proxy, .proxyRefused, .authorities, .other: .nobody
      }
  }
}
