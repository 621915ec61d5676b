public import NetOptCore
public import NetOptRouting

/// What probing a host of the list gave.
public struct HostProbe: Sendable {
  /// The host's name.
  public var host: String
  /// The port for which its endpoints are listed.
  public var port: UInt16
  /// How they were probed.
  public var method: ProbeMethod
  /// The endpoints in rank order; those that are excluded come last.
  public var endpoints: [EndpointProbe]

  /// Makes a result.
  public init(host: String, port: UInt16, method: ProbeMethod, endpoints: [EndpointProbe]) {
    self.host = host
    self.port = port
    self.method = method
    self.endpoints = endpoints
  }
}

/// What is known of an endpoint after probing it.
public struct EndpointProbe: Sendable {
  /// The address.
  public var address: IPAddress
  /// The region that the list gives it.
  public var region: String?
  /// The provider that the list gives it.
  public var isp: String?
  /// Its place, from 1; `nil` when it is excluded.
  public var rank: Int?
  /// The smoothed round trip time of its TCP handshakes.
  public var rtt: Duration?
  /// The TCP handshakes of this probe, in order.
  public var samples: [Duration]
  /// The state of its circuit.
  public var state: CircuitState
  /// Whether the next request tries it first.
  public var chosen: Bool
  /// Why the probe failed, or why the endpoint is excluded.
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
