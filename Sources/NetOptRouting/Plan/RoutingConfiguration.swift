import NetOptCore

/// How routing chooses one of several endpoints.
public enum SelectionPolicy: String, Hashable, Sendable, CaseIterable {
  /// Chooses the fastest endpoint, and keeps it until another endpoint is clearly faster: by more than 5 ms
  /// and by more than 15 %. Among the endpoints within 10 % of the fastest, each client draws one by weight,
  /// so that a fleet of clients does not send all its requests to one address.
  case fastest
  /// For each request, draws two endpoints by weight and chooses the one with the smaller product of score
  /// and requests under way, this request included. All endpoints get requests; faster ones get more.
  case balanced
  /// Chooses the first endpoint as `fastest` does. Then keeps this endpoint as long as it works, however much
  /// faster another endpoint becomes.
  case pinned
}

/// The settings of routing for this machine.
public struct RoutingConfiguration: Hashable, Sendable {
  /// The region of this machine, named as in the list. Among endpoints of unknown speed, those of the same
  /// region come first. Default: none.
  public var region: String?
  /// The internet provider of this machine, named as in the list. Among endpoints of unknown speed, those of
  /// the same provider come first. Default: none.
  public var isp: String?
  /// How routing chooses one of several endpoints. Default: `fastest`.
  public var policy: SelectionPolicy
  /// Whether the client makes background probes. If not, requests find out whether failed endpoints work
  /// again.
  package var probesInBackground = true

  /// Makes a configuration.
  public init(region: String? = nil, isp: String? = nil, policy: SelectionPolicy = .fastest) {
    self.region = region
    self.isp = isp
    self.policy = policy
  }

  /// Makes a configuration from the environment variables `NETOPT_REGION`, `NETOPT_ISP` and `NETOPT_POLICY`.
  /// An empty variable counts as unset, and so does an unknown policy.
  public init(environment: [String: String]) {
    self.init(
      region: environment["NETOPT_REGION"].flatMap { $0.isEmpty ? nil : $0 },
      isp: environment["NETOPT_ISP"].flatMap { $0.isEmpty ? nil : $0 },
      policy: environment["NETOPT_POLICY"].flatMap(SelectionPolicy.init) ?? .fastest)
  }
}

extension RoutePlan.Policy {
  /// The policy as plans and reports name it.
  init(_ policy: SelectionPolicy) {
    self =
      switch policy {
      case .fastest: .fastest
      case .balanced: .balanced
      case .pinned: .pinned
      }
  }
}
