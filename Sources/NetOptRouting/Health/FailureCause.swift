import NetOptCore

/// What the planner blames for the failure of a leg or a probe.
enum FailureCause: Hashable, Sendable {
  /// The endpoint. It gets a penalty, and its circuit breaker counts the failure.
  case endpoint
  /// The service behind an endpoint that can be reached. The endpoint's circuit breaker counts half a
  /// failure. A new connection does not show that the service has recovered.
  case service
  /// The endpoint's certificate: it is for other hosts, is not trusted, has expired or has a key that is not
  /// pinned. The endpoint goes into quarantine.
  case certificate
  /// This machine's network. The endpoint gets a penalty, so it ranks behind other endpoints for a while. Its
  /// circuit breaker does not count the failure.
  case localNetwork
  /// A cause with which every endpoint would fail, such as DNS or a proxy. Nothing is counted.
  case unattributed

  /// Whether the failure may be a sign that this machine's network does not work.
  var mayBeLocalNetwork: Bool { self == .endpoint || self == .localNetwork }

  /// The cause of a kind of failure.
  init(_ kind: LegFailure.Kind) {
    self =
      switch kind {
      case .refused, .connectTimeout, .tlsTimeout, .reset, .tls, .silent, .unhealthy: .endpoint
      case .busy: .service
      case .certificateName, .certificateUntrusted, .certificateExpired, .certificatePin: .certificate
      case .unreachable: .localNetwork
      case .resolve, .nameNotFound, .proxy, .proxyRefused, .authorities, .other: .unattributed
      }
  }
}
