import NetOptCore

/// The planner's knowledge of one origin: its listed endpoints, and the addresses that DNS gave for it.
struct HostRoutes: Sendable {
  /// A listed endpoint with its health.
  struct Endpoint: Sendable {
    /// The endpoint as the list describes it.
    let listed: ListedEndpoint
    /// The distance to this machine, 0 to 2: 1 when the region is not known to be the same, plus 1 when the
    /// provider is not known to be the same.
    let distance: Int
    var health = EndpointHealth()
    /// The times on which the endpoint's next routine probe depends.
    var probing: ProbeTimes
    /// The number of requests under way whose plans try this endpoint first. Counted only with the policy
    /// `balanced`.
    var inFlight = 0
  }

  /// An address from DNS with its health.
  struct DNSAddress: Sendable {
    let address: IPAddress
    var health = EndpointHealth()
    /// When an event last concerned the address. The address with the earliest such moment is forgotten
    /// first.
    var lastUpdated: MonotonicInstant
  }

  /// The element of `endpoints` or `dnsAddresses` that holds the health of an address.
  enum HealthIndex: Sendable {
    case endpoint(Int)
    case dnsAddress(Int)
  }

  /// The maximum number of DNS addresses that the planner remembers for an origin.
  static let mostDNSAddresses = 64

  let origin: Origin
  /// How plans choose the first endpoint.
  let policy: SelectionPolicy
  /// Whether the client probes endpoints in use in the background.
  let isProbed: Bool
  /// The random number by which this client chooses among endpoints of about the same speed.
  let draw: UInt64
  /// The endpoints in the order of the list. Code that changes the health of an endpoint must call
  /// `reassess(_:at:)`.
  var endpoints: [Endpoint]
  /// The addresses of `endpoints`, at the same indices.
  let addresses: [IPAddress]
  /// The index in `endpoints` of each address.
  private let indices: [IPAddress: Int]
  /// The addresses outside the list that the planner remembers, at most `mostDNSAddresses`.
  var dnsAddresses: [DNSAddress] = []
  /// The DNS address that won a race last. The pooled connections lead to this address.
  var lastDNSAddress: IPAddress?
  /// The usual time until servers of the origin begin a response.
  var usual = UsualTime()
  /// The responses that began while some endpoints were suspected of being silent. They show whether similar
  /// requests are answered elsewhere.
  var elsewhere = AnswersElsewhere()

  // The inputs of plans. Each change updates them for one endpoint.
  /// The usable endpoints in order.
  var ranking = Ranking()
  /// The excluded endpoints in the order of the list.
  var excluded: [ExcludedEndpoint] = []
  /// The leg to each endpoint, with its stagger. Plans copy these legs.
  var listedLegs: [RoutePlan.Leg]
  /// The endpoints whose state changes with the passing of time, and when.
  var timed: [(index: Int, due: MonotonicInstant)] = []
  /// When the first entry of `timed` is due.
  var reviewDue = MonotonicInstant(nanoseconds: .max)
  /// The index of the endpoint in use: the first endpoint of the last plan without constraints, if it was
  /// known to work, or the endpoint in use of an earlier run. `nil` without such an endpoint.
  var leader: Int?
  /// The plans that the planner reuses while nothing changes: the last plan or, with the policy `balanced`,
  /// one plan for each first endpoint.
  var kept: [KeptPlan] = []
  /// The last winner, while it is healthy: another success on a pooled connection to it changes nothing. Most
  /// reports describe such a success.
  var healthyWinner: (address: IPAddress, index: HealthIndex)?

  /// When the last plan was made for a request.
  var lastUsed: MonotonicInstant?
  /// When the origin came into use: since then, no two plans were more than `useMemory` apart.
  var inUseSince: MonotonicInstant?
  /// The kept result of `nextProbes(at:)`; `nil` when it has to be computed again.
  var nextProbes: NextProbes?
  /// Whether the origin's servers were seen to speak only HTTP/1.0 or HTTP/1.1.
  var speaksHTTP1 = false

  /// Makes the state of an origin without history.
  ///
  /// - Parameter listed: the origin's endpoints in the list. When several have the same address, the first
  ///   one counts.
  init(
    _ origin: Origin, listed: [ListedEndpoint], configuration: RoutingConfiguration, seed: UInt64
  ) {
    self.origin = origin
    policy = configuration.policy
    isProbed = configuration.probesInBackground
    var random = SplitMix64(seed: seed ^ StableHash.fnv1a(origin.description.utf8))
    draw = random.next()
    var endpoints: [Endpoint] = []
    var indices: [IPAddress: Int] = [:]
    for endpoint in listed where indices[endpoint.address] == nil {
      indices[endpoint.address] = endpoints.count
      endpoints.append(
        Endpoint(
          listed: endpoint, distance: configuration.distance(to: endpoint), probing: ProbeTimes(&random)))
    }
    self.endpoints = endpoints
    self.indices = indices
    addresses = endpoints.map(\.listed.address)
    listedLegs = addresses.map { RoutePlan.Leg(.address($0), source: .list) }
    ranking = Ranking(endpoints.indices.map { entry($0, .unknown) })
  }

  var isSecure: Bool { origin.scheme == .https }

  /// The health of an address, listed or from DNS.
  func health(of address: IPAddress) -> EndpointHealth? {
    switch healthIndex(of: address) {
    case .endpoint(let index): endpoints[index].health
    case .dnsAddress(let index): dnsAddresses[index].health
    case nil: nil
    }
  }

  /// The index of a listed address; `nil` for other addresses.
  func index(of address: IPAddress) -> Int? { indices[address] }

  private func healthIndex(of address: IPAddress) -> HealthIndex? {
    if let index = indices[address] { return .endpoint(index) }
    return dnsAddresses.firstIndex { $0.address == address }.map { .dnsAddress($0) }
  }

  /// Changes the health of an address. An address outside the list is remembered as a DNS address.
  ///
  /// - Parameter change: makes the change and returns whether there was one.
  mutating func update(
    _ address: IPAddress, at now: MonotonicInstant, _ change: (inout EndpointHealth) -> Bool
  ) {
    healthyWinner = nil
    if let index = indices[address] {
      if change(&endpoints[index].health) { reassess(index, at: now) }
      return
    }
    let index = dnsAddresses.firstIndex { $0.address == address } ?? add(address, at: now)
    dnsAddresses[index].lastUpdated = now
    _ = change(&dnsAddresses[index].health)
  }

  /// Begins to remember an address outside the list. Forgets another one when there are `mostDNSAddresses`.
  private mutating func add(_ address: IPAddress, at now: MonotonicInstant) -> Int {
    if dnsAddresses.count >= Self.mostDNSAddresses {
      let oldest = dnsAddresses.indices.min {
        let (first, second) = (dnsAddresses[$0], dnsAddresses[$1])
        return (first.lastUpdated, first.address) < (second.lastUpdated, second.address)
      }
      if let oldest { dnsAddresses.remove(at: oldest) }
    }
    dnsAddresses.append(DNSAddress(address: address, lastUpdated: now))
    return dnsAddresses.count - 1
  }

  /// Takes over the properties that do not depend on the network from `old`, the state of the origin in
  /// another network.
  mutating func keepNetworkIndependentState(of old: HostRoutes, at now: MonotonicInstant) {
    for index in endpoints.indices {
      endpoints[index].inFlight = old.endpoints[index].inFlight
      endpoints[index].probing = old.endpoints[index].probing
      endpoints[index].probing.measured = nil
    }
    lastUsed = old.lastUsed
    // The probes that the client makes at its start cover the new network. Background probes begin a new
    // interval.
    inUseSince = old.inUseSince.map { _ in now }
    nextProbes = nil
    speaksHTTP1 = old.speaksHTTP1
  }

  /// Notes which address won a race.
  mutating func won(_ address: IPAddress, from source: AddressSource) {
    if source == .dns { lastDNSAddress = address }
    healthyWinner = nil
    if let index = healthIndex(of: address), health(of: address)?.isHealthy == true {
      healthyWinner = (address, index)
    }
  }

  /// DNS addresses in the order in which legs try them, each with its stagger.
  func ordered(
    _ addresses: [IPAddress], at now: MonotonicInstant
  ) -> [(address: IPAddress, stagger: Duration)] {
    var front: [(address: IPAddress, stagger: Duration)] = []
    var back = front
    for address in addresses {
      let health = health(of: address)
      let leg = (address, stagger(health?.readiness(secure: isSecure)))
      switch health?.state(at: now) {
      case .open, .quarantined: back.append(leg)
      default: front.insert(leg, at: address == lastDNSAddress ? 0 : front.count)
      }
    }
    return front + back
  }

  /// The stagger of a leg: the time after which the next leg starts in parallel, unless this leg is ready. It
  /// is the time within which nearly every connection to the leg's address is ready
  /// (`RoundTripEstimate.bound`), limited to 50 ms to 2 s. `Duration.defaultStagger` without measurements.
  func stagger(_ estimate: RoundTripEstimate?) -> Duration {
    guard let estimate else { return .defaultStagger }
    return .nanoseconds(min(max(estimate.boundNanoseconds, Self.shortestStagger), Self.longestStagger))
  }

  /// The shortest stagger in nanoseconds.
  private static let shortestStagger: Int64 = 50_000_000
  /// The longest stagger in nanoseconds.
  private static let longestStagger: Int64 = 2_000_000_000
}

extension RoutingConfiguration {
  /// The distance between an endpoint and this machine, 0 to 2: 1 when the region is not known to be the
  /// same, plus 1 when the provider is not known to be the same.
  func distance(to endpoint: ListedEndpoint) -> Int {
    let sameRegion = region != nil && endpoint.region == region
    let sameProvider = isp != nil && endpoint.isp == isp
    return (sameRegion ? 0 : 1) + (sameProvider ? 0 : 1)
  }
}
