public import NetOptCore
public import NetOptRouting

/// The result of probing the endpoints of one host of the list.
public struct HostProbe: Sendable {
  /// The name of the host.
  public var host: String
  /// The port of the host's endpoints in the list.
  public var port: UInt16
  /// The method with which the endpoints were probed.
  public var method: ProbeMethod
  /// The host's endpoints in the order of their ranks; endpoints without a rank come last.
  public var endpoints: [EndpointProbe]

  /// Makes a result.
  public init(host: String, port: UInt16, method: ProbeMethod, endpoints: [EndpointProbe]) {
    self.host = host
    self.port = port
    self.method = method
    self.endpoints = endpoints
  }
}

/// The state of an endpoint after it was probed.
public struct EndpointProbe: Sendable {
  /// The IP address of the endpoint.
  public var address: IPAddress
  /// The region of the endpoint, as the list names it; `nil` when the list names none.
  public var region: String?
  /// The provider of the endpoint's network, as the list names it; `nil` when the list names none.
  public var isp: String?
  /// The place of the endpoint in the order of the host's endpoints, from 1. `nil` when requests exclude the
  /// endpoint, for example because its circuit breaker is open.
  public var rank: Int?
  /// The smoothed round-trip time of the endpoint, from all TCP handshakes and ICMP echo requests so far;
  /// `nil` when none was measured.
  public var rtt: Duration?
  /// The times that this probe measured, in order: the durations of its TCP handshakes, or with the method
  /// `icmp` the round-trip times of its echo requests. Empty when the probe failed, and when the budget ended
  /// before the probe began.
  public var samples: [Duration]
  /// The state of the endpoint's circuit breaker.
  public var state: CircuitState
  /// Whether the endpoint has rank 1. With the policies `fastest` and `pinned`, the next request to the host
  /// would try this endpoint first. With the policy `balanced`, the next request may try another endpoint
  /// first.
  public var chosen: Bool
  /// Why the probe failed. If the probe did not fail, but requests exclude the endpoint: the last failure of
  /// the endpoint. Otherwise `nil`.
  public var failure: LegFailure?

  /// Makes a result.
  public init(
    address: IPAddress, region: String? = nil, isp: String? = nil, rank: Int?, rtt: Duration?,
    samples: [Duration], state: CircuitState, chosen: Bool, failure: LegFailure? = nil
  ) {
    self.address = address
    self.region = region
    self.isp = isp
    self.rank = rank
    self.rtt = rtt
    self.samples = samples
    self.state = state
    self.chosen = chosen
    self.failure = failure
  }
}
