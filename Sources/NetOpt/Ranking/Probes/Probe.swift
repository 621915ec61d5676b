import NetOptCore
import NetOptRouting

/// How a method takes a sample of an endpoint.
protocol Probe: Sendable {
  /// The method of the quick samples that follow a full one.
  var furtherSamples: ProbeMethod { get }
  /// Whether what comes of it counts for or against the endpoint.
  var judgesEndpoint: Bool { get }
  /// Whether it shows that an endpoint works again that had failed. Background probes of other methods take the usual one.
  var showsRecovery: Bool { get }

  /// Takes a sample.
  func take(_ sample: ProbeSample, by prober: Prober) async -> Result<ConnectReport, LegError>
}

extension Probe {
  var furtherSamples: ProbeMethod { .tcp }
  var judgesEndpoint: Bool { true }
  var showsRecovery: Bool { true }
}

/// A sample to be taken.
struct ProbeSample: Sendable {
  let target: Prober.Target
  let limit: Duration
  let started: MonotonicInstant
  /// Whether the limit is what is left of the budget. What an endpoint has not done by then is not held against it: the limit may be shorter than
  /// the way to it.
  let isCut: Bool
  /// Whether the connection is kept for requests, where it can be.
  let keep: Bool
}

extension ProbeMethod {
  /// What takes the samples of each method.
  var probe: any Probe {
    switch self {
    case .tcp: TCPProbe()
    case .tls: TLSProbe()
    case .http: HTTPProbe()
    case .icmp: EchoProbe()
    }
  }
}
