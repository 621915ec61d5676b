import NetOptCore
import NetOptRouting

/// Implements a probe method: takes samples of an endpoint.
protocol Probe: Sendable {
  /// A probe takes one full sample with its own method. After a success it takes two quick samples, which keep
  /// no connection. This is the method of the quick samples.
  var furtherSampleMethod: ProbeMethod { get }
  /// Whether a result counts for or against the endpoint. If this is false, the prober does not pass results
  /// to `Router.record(probe:of:for:started:)`. Then `showsRecovery` must be false too: if it were true, due
  /// probes would use this method, and the planner would wait for results that never come.
  var judgesEndpoint: Bool { get }
  /// Whether a success shows that a failed endpoint works again. If this is false, due probes use the default
  /// method of the origin instead (`Prober.probe(_:)`): `tls`, or `tcp` for `http`.
  var showsRecovery: Bool { get }

  /// Takes a sample.
  ///
  /// - Returns: a report with the durations of the handshakes or of the echo; or the failure. For an `https`
  ///   origin, a new connection without a TLS handshake (`tls` is `nil`) is only a measurement. It does not
  ///   show that the endpoint works. The planner records the round-trip time and counts this machine's
  ///   network as working. If the probe held the one attempt of a half-open circuit breaker, the planner takes
  ///   the attempt back, and another probe or a request can make it.
  func take(_ sample: ProbeSample, by prober: Prober) async -> Result<ConnectReport, LegError>
}

extension Probe {
  var furtherSampleMethod: ProbeMethod { .tcp }
  var judgesEndpoint: Bool { true }
  var showsRecovery: Bool { true }
}

/// The parameters of one sample: one measurement of an endpoint.
struct ProbeSample: Sendable {
  /// The endpoint to measure.
  let target: Prober.Target
  /// The time limit of the sample, at least 1 ms.
  let limit: Duration
  /// When the sample begins.
  let started: MonotonicInstant
  /// Whether `limit` is the rest of the budget and not the whole budget. A timeout then does not count as a
  /// failure of the endpoint, because the limit may be shorter than the round trip to the endpoint.
  let isShortened: Bool
  /// Whether to keep the connection for requests, if the transport can keep it. `target.keepsConnection` for
  /// a full sample; false for a quick sample.
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
