import NetOptCore

/// How one of several endpoints is chosen.
public enum SelectionPolicy: String, Hashable, Sendable, CaseIterable {
  /// The fastest. Among those within 10 % of it, each client draws one by weight, so that a fleet of clients does not
  /// run to one address.
  case fastest
  /// For each request the better one of two that are drawn by weight: the one with the smaller product of its score
  /// and the requests that it would have under way. All endpoints get requests, the faster ones more of them.
  case balanced
  /// As `fastest` at first, and then the same one as long as it works, however much faster another one becomes.
  case pinned
}

/// What routing is told about this machine and its wishes.
public struct RoutingConfiguration: Hashable, Sendable {
  /// The region in which this machine stands, as the list names regions. Endpoints of the same region come first as
  /// long as nothing is known of their speed. Default: none.
  public var region: String?
  /// The provider through whose network this machine reaches others, as the list names providers; as `region`.
  public var isp: String?
  /// How one of several endpoints is chosen. Default: `fastest`.
  public var policy: SelectionPolicy
  /// Whether what is due for a probe is probed. Otherwise requests find out what becomes of endpoints that failed.
  package var probesInBackground = true

  /// Makes a configuration.
  public init(region: String? = nil, isp: String? = nil, policy: SelectionPolicy = .fastest) {
    self.region = region
    self.isp = isp
    self.policy = policy
  }

  /// Makes a configuration from environment variables: `NETOPT_REGION`, `NETOPT_ISP` and `NETOPT_POLICY`. Empty ones
  /// count as unset, and so does a policy that there is not.
  public init(environment: [String: String]) {
    self.init(
      region: environment["NETOPT_REGION"].flatMap { $0.isEmpty ? nil : $0 },
      isp: environment["NETOPT_ISP"].flatMap { $0.isEmpty ? nil : $0 },
      policy: environment["NETOPT_POLICY"].flatMap(SelectionPolicy.init) ?? .fastest)
  }
}

extension RoutePlan.Policy {
  init(_ policy: SelectionPolicy) {
    self =
      switch policy {
      case .fastest: .fastest
      case .balanced: .balanced
      case .pinned: .pinned
      }
  }
}
