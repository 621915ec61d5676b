import NetOptCore
import NetOptRouting

/// Implements a probe method: takes samples of an endpoint.
protocol Probe: Sendable {
  /// The probe method of the quick samples that follow the full sample.
  var furtherSampleMethod: ProbeMethod { get }
  /// Whether a result counts for or against the endpoint. If false, the prober does not tell the planner the
  /// results. The planner waits for the result of each due probe, so due probes must then use another method:
  /// `showsRecovery` must be false too.
  var judgesEndpoint: Bool { get }
  /// Whether a success shows that a failed endpoint works again. If false, due probes use the default method
  /// instead (`Prober.probe(_:)`).
  var showsRecovery: Bool { get }

  /// Takes a sample.
  ///
  /// - Returns: a report with the durations of the handshakes or of the echo; or the failure. For an `https`
  ///   origin, the report of a new connection without a TLS handshake (`tls` is `nil`) does not count as a
  ///   success. The planner then uses only the durations in the report.
  func take(_ sample: ProbeSample, by prober: Prober) async -> Result<ConnectReport, LegError>
}

extension Probe {
  var furtherSampleMethod: ProbeMethod { .tcp }
  var judgesEndpoint: Bool { true }
  var showsRecovery: Bool { true }
}

/// The parameters of a sample.
struct ProbeSample: Sendable {
  /// The endpoint.
  let target: Prober.Target
  /// The time limit of the sample, at least 1 ms.
  let limit: Duration
  /// When the sample begins.
  let started: MonotonicInstant
  /// Whether `limit` is the rest of the budget and not the whole budget. A timeout then does not count as a
  /// failure of the endpoint, because the limit may be shorter than the round trip to the endpoint.
  let isShortened: Bool
  /// Whether to keep the connection for requests, if the transport can keep it.
  let keepsConnection: Bool
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
