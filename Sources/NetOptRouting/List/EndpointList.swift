public import FoundationEssentials
public import NetOptCore

/// The IP list (`iplist.json`): the addresses that serve each host.
///
/// `docs/schemas/iplist.schema.json` describes the format. Unknown keys are ignored, so that a list may carry
/// notes and later versions may add keys. A list that was read from bytes keeps all rules of
/// `check(_:rules:)`. A list that is made in code gets normalised host names, and weights and a refresh
/// interval in range; all other values are used as they are.
public struct EndpointList: Hashable, Sendable {
  /// The version of the format. There is only one version so far.
  public static let schemaVersion = 1
  /// The maximum number of endpoints in a list, all hosts together.
  public static let maximumEndpoints = 10_000
  /// The maximum size of a list in bytes.
  public static let maximumBytes = 1 << 20

  /// Where and how often a client looks for newer issues of a list.
  public struct Refresh: Hashable, Sendable {
    /// The allowed intervals: from 60 s to 365 days.
    public static let intervals: ClosedRange<Duration> = .seconds(60) ... .seconds(365 * 86_400)
    /// The interval for a list that names none: one day.
    public static let defaultInterval = Duration.seconds(86_400)

    /// The URL of newer issues of the list. It is an `https` URL if the list was read from bytes.
    public let url: HTTPURL
    /// How often the client looks for a newer issue; within `intervals`.
    public let every: Duration

    /// Makes a refresh rule.
    ///
    /// - Parameters:
    ///   - url: the URL of newer issues.
    ///   - every: how often the client looks for them. A value outside of `intervals` becomes the nearest
    ///     allowed one.
    public init(url: HTTPURL, every: Duration = Refresh.defaultInterval) {
      self.url = url
      self.every = every.asRefreshInterval
    }
  }

  /// The version of the list's format. Always `schemaVersion`.
  public var schema: Int { Self.schemaVersion }
  /// The number of this issue. A later issue has a higher number.
  public let serial: Int64
  /// When the list was issued; `nil` when the list does not say so.
  public let issued: Date?
  /// When the list expires; `nil` for never.
  public let expires: Date?
  /// Where and how often the client looks for newer issues; `nil` for a list that is maintained by hand.
  public let refresh: Refresh?
  /// The hosts by name. A name is in lower case, without a trailing dot.
  public let hosts: [String: HostEntry]

  /// Makes a list in code. Normalises the host names. When two names become equal, the list has only one of
  /// their entries.
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

  /// Whether the list has expired. Requests do not use an expired list.
  public func isExpired(at date: Date) -> Bool { expires.map { date >= $0 } ?? false }

  /// The number of endpoints of all hosts together.
  public var endpointCount: Int { hosts.values.reduce(0) { $0 + $1.endpoints.count } }

  /// The origin of a host in the list; `nil` when the host is not in the list. The scheme is `http` for port
  /// 80 and `https` for any other port, because the list names no scheme.
  package func origin(of host: String) -> Origin? {
    let name = Origin.normalized(host: host)
    return hosts[name].map { Origin($0.port == 80 ? .http : .https, host: name, port: $0.port) }
  }

  /// The origins of all hosts, in the order of the host names.
  package var origins: [Origin] { hosts.keys.sorted().compactMap(origin(of:)) }
}

/// The entry of a host in the IP list.
public struct HostEntry: Hashable, Sendable {
  /// The health check of a host's endpoints: an HTTP request, and the response status that it must get.
  public struct Health: Hashable, Sendable {
    /// The path of the request; begins with "/".
    public let path: String
    /// The response status of a healthy endpoint.
    public let expect: Int

    /// Makes a health check.
    public init(path: String, expect: Int = 200) {
      self.path = path
      self.expect = expect
    }
  }

  /// The TCP port. The endpoints serve only URLs with this port; other URLs use DNS.
  public let port: UInt16
  /// The health check; `nil` when the list names none.
  public let health: Health?
  /// The pins of the host: the SHA-256 hashes of the public keys that its certificate may have, as
  /// `sha256/BASE64`. Empty if any key is accepted.
  public var pins: [String] { publicKeyPins.map(\.description) }
  /// The endpoints in the list's order.
  public let endpoints: [ListedEndpoint]
  /// The pins of the host.
  package let publicKeyPins: [PublicKeyPin]

  /// The maximum number of pins of a host.
  package static let mostPins = 16

  /// Makes an entry.
  public init(port: UInt16 = 443, health: Health? = nil, endpoints: [ListedEndpoint]) {
    self.init(port: port, health: health, pins: [], endpoints: endpoints)
  }

  /// Makes an entry with pins.
  package init(port: UInt16 = 443, health: Health? = nil, pins: [PublicKeyPin], endpoints: [ListedEndpoint]) {
    self.port = port
    self.health = health
    publicKeyPins = pins
    self.endpoints = endpoints
  }
}

extension EndpointList {
  /// The pins of the hosts that have some.
  package var pins: [String: [PublicKeyPin]] {
    hosts.compactMapValues { $0.publicKeyPins.isEmpty ? nil : $0.publicKeyPins }
  }
}

/// An endpoint of a host in the IP list.
public struct ListedEndpoint: Hashable, Sendable {
  /// The allowed weights.
  public static let weights = 1...1000
  /// The weight of an endpoint for which the list names none.
  public static let defaultWeight = 100

  /// The address.
  public let address: IPAddress
  /// The region of the endpoint, as the list names it.
  public let region: String?
  /// The provider whose network the endpoint is in, as the list names it.
  public let isp: String?
  /// The endpoint's share of the load among endpoints of about the same speed, relative to their weights.
  /// Within `weights`.
  public let weight: Int

  /// Makes an endpoint. A weight outside of `weights` becomes the nearest allowed one.
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
  /// The duration, limited to the allowed refresh intervals (`EndpointList.Refresh.intervals`).
  var asRefreshInterval: Duration {
    let range = EndpointList.Refresh.intervals
    return min(max(self, range.lowerBound), range.upperBound)
  }
}
