/// How one of several endpoints is chosen.
public enum SelectionPolicy: String, Hashable, Sendable, CaseIterable {
  /// The fastest. Among those within 10 % of it, each client draws one by weight, so that a fleet of clients does not
  /// run to one address.
  case fastest
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

  /// Makes a configuration.
  public init(region: String? = nil, isp: String? = nil, policy: SelectionPolicy = .fastest) {
    self.region = region
    self.isp = isp
    self.policy = policy
  }

  /// Makes a configuration from environment variables: `NETOPT_REGION` and `NETOPT_ISP`. Empty ones count as unset.
  public init(environment: [String: String]) {
    self.init(
      region: environment["NETOPT_REGION"].flatMap { $0.isEmpty ? nil : $0 },
      isp: environment["NETOPT_ISP"].flatMap { $0.isEmpty ? nil : $0 })
  }
}
