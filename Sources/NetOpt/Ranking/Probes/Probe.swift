import NetOptCore
import NetOptRouting

/// A probe method: how to take a sample of an endpoint.
protocol Probe: Sendable {
  /// The method of the quick samples that follow a full sample.
  var furtherSampleMethod: ProbeMethod { get }
  /// Whether a result counts for or against the endpoint.
  var judgesEndpoint: Bool { get }
  /// Whether a success shows that a failed endpoint works again. If not, background probes use the default
  /// method instead.
  var showsRecovery: Bool { get }

  /// Takes a sample.
  func take(_ sample: ProbeSample, by prober: Prober) async -> Result<ConnectReport, LegError>
}

extension Probe {
  var furtherSampleMethod: ProbeMethod { .tcp }
  var judgesEndpoint: Bool { true }
  var showsRecovery: Bool { true }
}

/// The parameters of a sample.
struct ProbeSample: Sendable {
  let target: Prober.Target
  let limit: Duration
  let started: MonotonicInstant
  /// Whether `limit` is the rest of the budget. A timeout then does not count against the endpoint: the limit
  /// may be shorter than the round trip to the endpoint.
  let isCut: Bool
  /// Whether to keep the connection for requests, if the transport can keep it.
  let keep: Bool
}

extension ProbeMethod {
  /// The probe that implements this method.
  var probe: any Probe {
    switch self {
    case .tcp: TCPProbe()
    case .tls: TLSProbe()
    case .http: HTTPProbe()
    case .icmp: ICMPProbe()
    }
  }
}
