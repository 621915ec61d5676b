import NetOptCore
import NetOptRouting

/// A probe method: how to take a sample of an endpoint.
protocol Probe: Sendable {
  /// The probe method of the further, quick samples that follow the full sample.
  var furtherSampleMethod: ProbeMethod { get }
  /// Whether a result counts for or against the endpoint. If false, the prober does not report results to the
  /// planner, and `showsRecovery` must be false too: the planner waits for the result of each due probe.
  var judgesEndpoint: Bool { get }
  /// Whether a success shows that a failed endpoint works again. If not, due probes use the default method
  /// instead (`Prober.probe(_:)`).
  var showsRecovery: Bool { get }

  /// Takes a sample.
  ///
  /// - Returns: the times of the sample, or the failure. For an `https` origin, the planner takes a report of
  ///   a new connection without `tls` for a measurement only: the report does not count as a success.
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
