import NetOptCore

/// The cause of the failure of a leg.
enum FailureCause: Hashable, Sendable {
  /// The endpoint. It gets a penalty, and its circuit breaker counts the failure.
  case endpoint
  /// The service behind an endpoint that can be reached. The failure counts half, and a new connection does
  /// not show that the service has recovered.
  case service
  /// The endpoint, whose certificate is not the host's, is not trusted or has expired. The endpoint goes into
  /// quarantine.
  case certificate
  /// This machine's network. The endpoint ranks behind the others for a while, but its circuit breaker counts
  /// nothing.
  case localNetwork
  /// A cause that the choice of another endpoint would not avoid, such as DNS or a proxy. No endpoint is
  /// blamed.
  case unattributed

  /// Whether this machine's network may have caused the failure, instead of the endpoint.
  var mayBeLocalNetwork: Bool { self == .endpoint || self == .localNetwork }

  /// The cause of a kind of failure.
  init(_ kind: LegFailure.Kind) {
    self =
      switch kind {
      case .refused, .connectTimeout, .tlsTimeout, .reset, .tls, .silent, .unhealthy: .endpoint
      case .busy: .service
      case .certificateName, .certificateUntrusted, .certificateExpired: .certificate
      case .unreachable: .localNetwork
      case .resolve, .nameNotFound, .proxy, .proxyRefused, .authorities, .other: .unattributed
      }
  }
}
