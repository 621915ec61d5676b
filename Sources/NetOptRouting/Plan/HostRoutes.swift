import NetOptCore

/// The planner's knowledge of one origin: its listed endpoints, and the addresses that DNS gave for it.
struct HostRoutes: Sendable {
  /// A listed endpoint with its health.
  struct Endpoint: Sendable {
    /// The endpoint as the list describes it.
    let listed: ListedEndpoint
    /// The distance from this machine to the endpoint, from 0 to 2. A region that is unknown or differs from
    /// this machine's counts 1, and so does a provider that is unknown or differs.
    let distance: Int
    var health = EndpointHealth()
    /// The times on which the endpoint's next routine probe depends.
    var probing: ProbeTimes
    /// The number of requests under way whose plans try this endpoint first. A request counts until its
    /// response begins or it fails. Counted only with the policy `balanced`.
    var inFlight = 0
    var counts = EndpointCounts()
  }

  /// An address from DNS with its health.
  struct DNSAddress: Sendable {
    let address: IPAddress
    var health = EndpointHealth()
    /// When `update(_:at:_:)` was last called for the address. When there are too many DNS addresses, the
    /// planner forgets the address with the earliest such moment.
    var lastUpdated: MonotonicInstant
  }

  /// Where the health of an address is: an index in `endpoints` or in `dnsAddresses`.
  enum HealthIndex: Sendable {
    case endpoint(Int)
    case dnsAddress(Int)
  }

  /// The maximum number of DNS addresses that the planner remembers for an origin.
  static let mostDNSAddresses = 64

  let origin: Origin
  /// How plans choose the first endpoint.
  let policy: SelectionPolicy
  /// Whether the client makes background probes (`RoutingConfiguration.probesInBackground`).
  let isProbed: Bool
  /// The random number by which this client chooses among endpoints of about the same speed. Constant for the
  /// life of the client, so that the choice stays the same.
  let draw: UInt64
  /// The endpoints in the order of the list. Code that changes the health of an endpoint must call
  /// `reassess(_:at:)`.
  var endpoints: [Endpoint]
  /// The addresses of `endpoints`, at the same indices.
  let addresses: [IPAddress]
  /// The index in `endpoints` of each address.
  private let indices: [IPAddress: Int]
  /// The addresses outside the list whose health the planner remembers, at most `mostDNSAddresses`.
  var dnsAddresses: [DNSAddress] = []
  /// The address from DNS that last won a race; `nil` before the first one. Requests over DNS try it first,
  /// because the pooled connections lead to it.
  var lastDNSAddress: IPAddress?
  /// The usual time until servers of the origin begin a response.
  var usual = UsualTime()
  /// The responses that began while some endpoints were suspected of being silent. They show whether other
  /// endpoints answer requests of the same kind.
  var elsewhere = AnswersElsewhere()

  // The inputs of plans. A change of an endpoint's health updates them for this endpoint.
  /// The usable endpoints in the order of their ranks.
  var ranking = Ranking()
  /// The excluded endpoints in the order of the list.
  var excluded: [ExcludedEndpoint] = []
  /// The leg to each endpoint, with its stagger. Plans copy these legs.
  var listedLegs: [RoutePlan.Leg]
  /// The endpoints whose state will change without an event, each with the moment `due` of its next change.
  /// An example is the end of a circuit breaker's open time. `review(at:)` then ranks the endpoint again.
  var timed: [(index: Int, due: MonotonicInstant)] = []
  /// When `review(at:)` must run: at the first `due` in `timed`, or earlier. The latest moment when `timed`
  /// is empty.
  var reviewDue = MonotonicInstant(nanoseconds: .max)
  /// The index of the endpoint in use. `Ranking.front` keeps this endpoint first until another one is clearly
  /// better. It is the first endpoint of the last plan that was made without constraints of the request, if
  /// this endpoint was known to work (`Ranking.Standing.known`). Before the first plan, it is the endpoint in
  /// use of an earlier run. `nil` without such an endpoint.
  var leader: Int?
  /// The plans that the planner reuses while nothing changes: the last plan or, with the policy `balanced`,
  /// one plan for each first endpoint.
  var kept: [KeptPlan] = []
  /// The address that won the last race, if it was healthy then; `nil` after any other event that may change
  /// the health of an address. Another success on a pooled connection to this address changes nothing. Most
  /// reports describe such a success (`recordIfUnchanged`).
  var healthyWinner: (address: IPAddress, index: HealthIndex)?

  /// When the last plan was made that counts as use of the origin (`RoutePlanner.plan`); `nil` before the
  /// first one.
  var lastUsed: MonotonicInstant?
  /// When the origin last came into use; `nil` before the first plan. Since then, the time between two
  /// successive plans was never as long as `useMemory`. After a change of the network, the moment of the
  /// change.
  var inUseSince: MonotonicInstant?
  /// The kept result of `nextProbes(at:)`; `nil` when it has to be computed again.
  var nextProbes: NextProbes?
  /// Whether the last response to a request that allowed HTTP/2 was in HTTP/1.0 or HTTP/1.1. Not recorded for
  /// `http` origins.
  var speaksHTTP1 = false

  /// Makes the state of an origin without history.
  ///
  /// - Parameters:
  ///   - listed: the origin's endpoints in the list. When several have the same address, the first one
  ///     counts.
  ///   - seed: the planner's seed. The random numbers of the origin come from this seed and the origin.
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

  /// Whether connections to the origin use TLS.
  var isSecure: Bool { origin.scheme == .https }

  /// The health of an address, listed or from DNS; `nil` when the planner does not remember the address.
  func health(of address: IPAddress) -> EndpointHealth? {
    switch healthIndex(of: address) {
    case .endpoint(let index): endpoints[index].health
    case .dnsAddress(let index): dnsAddresses[index].health
    case nil: nil
    }
  }

  /// The index of a listed address; `nil` for other addresses.
  func index(of address: IPAddress) -> Int? { indices[address] }

  /// Where the health of an address is; `nil` when the planner does not remember the address.
  private func healthIndex(of address: IPAddress) -> HealthIndex? {
    if let index = indices[address] { return .endpoint(index) }
    return dnsAddresses.firstIndex { $0.address == address }.map { .dnsAddress($0) }
  }

  /// Changes the health of an address, and ranks a listed address again. Begins to remember an address
  /// outside the list.
  ///
  /// - Parameter change: changes the health and returns whether anything has changed.
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

  /// Begins to remember an address outside the list. When there are already `mostDNSAddresses`, forgets the
  /// address whose `lastUpdated` is the earliest.
  ///
  /// - Returns: the index of the address in `dnsAddresses`.
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

  /// Copies the properties that do not depend on the network from another state of this origin.
  ///
  /// - Parameter old: the state of the origin in the network that this machine has left.
  mutating func keepNetworkIndependentState(of old: HostRoutes, at now: MonotonicInstant) {
    for index in endpoints.indices {
      endpoints[index].inFlight = old.endpoints[index].inFlight
      endpoints[index].counts = old.endpoints[index].counts
      endpoints[index].probing = old.endpoints[index].probing
      endpoints[index].probing.measured = nil
    }
    lastUsed = old.lastUsed
    // After a change of the network, the client itself probes the hosts in use. Background probes begin a new
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

  /// Returns addresses from DNS in the order in which legs try them, each with its stagger
  /// (`RoutePlanner.ordered`).
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
  /// (`RoundTripEstimate.bound`), but at least 50 ms and at most 2 s.
  ///
  /// - Parameter estimate: the time until a connection to the address is ready. `nil` without measurements:
  ///   the stagger is then `Duration.defaultStagger`.
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
  /// The distance from this machine to the endpoint, from 0 to 2. A region that is unknown or differs from
  /// this machine's counts 1, and so does a provider that is unknown or differs.
  func distance(to endpoint: ListedEndpoint) -> Int {
    let sameRegion = region != nil && endpoint.region == region
    let sameProvider = isp != nil && endpoint.isp == isp
    return (sameRegion ? 0 : 1) + (sameProvider ? 0 : 1)
  }
}
