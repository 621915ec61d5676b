public import FoundationEssentials
public import NetOptCore

/// The IP list (`iplist.json`): which addresses serve which hosts.
///
/// The format is described by `docs/schemas/iplist.schema.json`. Keys that it does not know are ignored, so that a
/// list may carry notes, and later versions may add to it. A list that was read from bytes keeps all rules of
/// `check(_:rules:)`; one that is made in code is brought into shape (host names normalised, weights in range) and
/// otherwise taken as it is.
public struct EndpointList: Hashable, Sendable {
  /// The version of the format. There is one so far.
  public static let schemaVersion = 1
  /// The most endpoints that a list may have, all hosts together.
  public static let maximumEndpoints = 10_000
  /// The largest size of a list in bytes.
  public static let maximumBytes = 1 << 20

  /// Where newer issues of a list are found.
  public struct Refresh: Hashable, Sendable {
    /// How often a list may be looked for: from once a minute to once in 365 days.
    public static let intervals: ClosedRange<Duration> = .seconds(60) ... .seconds(365 * 86_400)
    /// How often a list is looked for unless it says so itself: once a day.
    public static let defaultInterval = Duration.seconds(86_400)

    /// The list's own URL; always `https`.
    public let url: HTTPURL
    /// How often it is looked at; one of `intervals`.
    public let every: Duration

    /// Makes a refresh rule.
    ///
    /// - Parameters:
    ///   - url: where newer issues are found.
    ///   - every: how often they are looked for. What is outside of `intervals` becomes the nearest one.
    public init(url: HTTPURL, every: Duration = Refresh.defaultInterval) {
      self.url = url
      self.every = every.asRefreshInterval
    }
  }

  /// The version of the format.
  public var schema: Int { Self.schemaVersion }
  /// The number of this issue. A later issue has a higher one.
  public let serial: Int64
  /// When the list was issued, when it says so.
  public let issued: Date?
  /// From when on the list is not to be used any more; `nil` for never.
  public let expires: Date?
  /// Where newer issues are found, or `nil` when the list is kept by hand.
  public let refresh: Refresh?
  /// The hosts by name: in lower case, without a trailing dot.
  public let hosts: [String: HostEntry]

  /// Makes a list in code. Host names are normalised; of two that are then the same, one counts.
  public init(
    serial: Int64 = 1, issued: Date? = nil, expires: Date? = nil, refresh: Refresh? = nil,
    hosts: [String: HostEntry]
  ) {
    self.serial = serial
    self.issued = issued
    self.expires = expires
    self.refresh = refresh
    self.hosts = Dictionary(
      hosts.map { (Origin.normalized(host: $0), $1) }, uniquingKeysWith: { first, _ in first })
  }

  /// Whether the list is not to be used any more. Direct mode is then off.
  public func isExpired(at date: Date) -> Bool { expires.map { date >= $0 } ?? false }

  /// The number of endpoints of all hosts together.
  public var endpointCount: Int { hosts.values.reduce(0) { $0 + $1.endpoints.count } }

  /// What is connected to for a host of the list, or `nil` when the host is not in it: `http` on port 80, `https` on
  /// any other port, since the list names no scheme.
  package func origin(of host: String) -> Origin? {
    let name = Origin.normalized(host: host)
    return hosts[name].map { Origin($0.port == 80 ? .http : .https, host: name, port: $0.port) }
  }

  /// What is connected to for all hosts, in the order of their names.
  package var origins: [Origin] { hosts.keys.sorted().compactMap(origin(of:)) }
}

/// A host of the IP list.
public struct HostEntry: Hashable, Sendable {
  /// What a healthy endpoint answers to.
  public struct Health: Hashable, Sendable {
    /// The path that is asked for; begins with "/".
    public let path: String
    /// The status that a healthy endpoint answers with.
    public let expect: Int

    /// Makes a health rule.
    public init(path: String, expect: Int = 200) {
      self.path = path
      self.expect = expect
    }
  }

  /// The TCP port. The endpoints serve URLs with this port alone; others go over DNS.
  public let port: UInt16
  /// What a healthy endpoint answers to, when the list says so.
  public let health: Health?
  /// The endpoints in the list's order.
  public let endpoints: [ListedEndpoint]

  /// Makes an entry.
  public init(port: UInt16 = 443, health: Health? = nil, endpoints: [ListedEndpoint]) {
    self.port = port
    self.health = health
    self.endpoints = endpoints
  }
}

/// An endpoint of a host in the IP list.
public struct ListedEndpoint: Hashable, Sendable {
  /// The weights that there are.
  public static let weights = 1...1000
  /// The weight of an endpoint that names none.
  public static let defaultWeight = 100

  /// The address.
  public let address: IPAddress
  /// The region in which it stands, as the list names it.
  public let region: String?
  /// The provider in whose network it stands, as the list names it.
  public let isp: String?
  /// Its share of the load among endpoints that are equally fast.
  public let weight: Int

  /// Makes an endpoint. A weight beyond `weights` becomes the nearest one.
  public init(
    _ address: IPAddress, region: String? = nil, isp: String? = nil,
    weight: Int = ListedEndpoint.defaultWeight
  ) {
    self.address = address
    self.region = region
    self.isp = isp
    self.weight = min(max(weight, Self.weights.lowerBound), Self.weights.upperBound)
  }
}

extension Duration {
  /// The nearest interval at which a list may be looked for.
  var asRefreshInterval: Duration {
    let range = EndpointList.Refresh.intervals
    return min(max(self, range.lowerBound), range.upperBound)
  }
}
