import NetOptCore

/// What is known of the ways to one origin: its endpoints in the list, and the addresses that DNS gave for it.
struct HostRoutes: Sendable {
  /// An endpoint of the list and its health.
  struct Endpoint: Sendable {
    let listed: ListedEndpoint
    /// In how many respects, of region and provider, it is not where this machine is.
    let distance: Int
    var health = EndpointHealth()
    var probing: ProbeTimes
    /// How many requests are under way that were planned to go there, as far as the policy asks for it.
    var inFlight = 0
  }

  /// An address that DNS gave and its health.
  struct Answer: Sendable {
    let address: IPAddress
    var health = EndpointHealth()
    var heardOf: MonotonicInstant
  }

  /// Where the health of an address is kept.
  enum Place: Sendable {
    case endpoint(Int)
    case answer(Int)
  }

  /// The most addresses from DNS that are remembered for an origin.
  static let mostAnswers = 64

  let origin: Origin
  let policy: SelectionPolicy
  /// Whether endpoints in use are probed in the background.
  let isProbed: Bool
  /// The number by which this client chooses among endpoints that are equally fast.
  let draw: UInt64
  /// In the list's order. Whoever changes the health of one has `reassess` put it in its place.
  var endpoints: [Endpoint]
  /// The addresses of the endpoints.
  let addresses: [IPAddress]
  private let indices: [IPAddress: Int]
  var answers: [Answer] = []
  /// The address from DNS that won last: it has the pooled connections.
  var lastAnswer: IPAddress?
  /// How long answers usually take.
  var usual = UsualTime()
  /// What was answered while endpoints are suspected of not answering.
  var elsewhere = AnswersElsewhere()

  // What plans are made of, kept up to date endpoint by endpoint.
  /// The endpoints that may be used, in their order.
  var ranking = Ranking()
  /// The others, in the list's order.
  var excluded: [ExcludedEndpoint] = []
  /// The leg to each endpoint, with the time that it is given to be ready. Plans are written from these.
  var listedLegs: [RoutePlan.Leg]
  /// The endpoints that the passing of time changes, and when.
  var timed: [(index: Int, due: MonotonicInstant)] = []
  /// When the first of them is due.
  var reviewDue = MonotonicInstant(nanoseconds: .max)
  /// The index of the endpoint that is in use.
  var leader: Int?
  /// The plans that are given out again as long as nothing changes: the last one or, where each request draws, one for
  /// each endpoint in front.
  var kept: [KeptPlan] = []
  /// An address of which one more success on a pooled connection changes nothing: most reports are of that kind.
  var settled: (address: IPAddress, place: Place)?

  /// When a plan was last made, and since when that has gone on without a long break.
  var lastUsed: MonotonicInstant?
  var inUseSince: MonotonicInstant?
  /// When its next probes are due; `nil` when that has to be worked out again.
  var nextProbes: NextProbes?
  /// Whether the origin's servers were seen to speak HTTP/1.1 alone.
  var speaksHTTP1 = false

  /// Makes the state of an origin of which nothing is known yet.
  ///
  /// - Parameter listed: its endpoints in the list. Of several with one address, the first counts.
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
    switch place(of: address) {
    case .endpoint(let index): endpoints[index].health
    case .answer(let index): answers[index].health
    case nil: nil
    }
  }

  /// The index of an address that is in the list.
  func index(of address: IPAddress) -> Int? { indices[address] }

  private func place(of address: IPAddress) -> Place? {
    if let index = indices[address] { return .endpoint(index) }
    return answers.firstIndex { $0.address == address }.map { .answer($0) }
  }

  /// Changes the health of an address. One that is not in the list is remembered as an answer from DNS.
  ///
  /// - Parameter change: makes the change and says whether there was one.
  mutating func update(
    _ address: IPAddress, at now: MonotonicInstant, _ change: (inout EndpointHealth) -> Bool
  ) {
    settled = nil
    if let index = indices[address] {
      if change(&endpoints[index].health) { reassess(index, at: now) }
      return
    }
    let index = answers.firstIndex { $0.address == address } ?? add(address, at: now)
    answers[index].heardOf = now
    _ = change(&answers[index].health)
  }

  private mutating func add(_ address: IPAddress, at now: MonotonicInstant) -> Int {
    if answers.count >= Self.mostAnswers {
      let oldest = answers.indices.min {
        (answers[$0].heardOf, answers[$0].address) < (answers[$1].heardOf, answers[$1].address)
      }
      if let oldest { answers.remove(at: oldest) }
    }
    answers.append(Answer(address: address, heardOf: now))
    return answers.count - 1
  }

  /// Takes over what does not belong to a network from what was known of the origin in another one.
  mutating func keep(whatIsUniversalOf old: HostRoutes, at now: MonotonicInstant) {
    for index in endpoints.indices {
      endpoints[index].inFlight = old.endpoints[index].inFlight
      endpoints[index].probing = old.endpoints[index].probing
      endpoints[index].probing.measured = nil
    }
    lastUsed = old.lastUsed
    // Probes that are due at once are the start's business.
    inUseSince = old.inUseSince.map { _ in now }
    nextProbes = nil
    speaksHTTP1 = old.speaksHTTP1
  }

  /// Notes which address won.
  mutating func won(_ address: IPAddress, from source: AddressSource) {
    if source == .dns { lastAnswer = address }
    settled = nil
    if let place = place(of: address), health(of: address)?.isClear == true { settled = (address, place) }
  }

  /// Answers from DNS in the order in which they are tried, each with the time that it is given to be ready.
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
      default: front.insert(leg, at: address == lastAnswer ? 0 : front.count)
      }
    }
    return front + back
  }

  /// How long a leg is given to be ready before the next one starts beside it: as long as nearly every connection
  /// to it takes.
  func stagger(_ estimate: RoundTripEstimate?) -> Duration {
    guard let estimate else { return .defaultStagger }
    return .nanoseconds(min(max(estimate.boundNanoseconds, Self.shortestStagger), Self.longestStagger))
  }

  private static let shortestStagger: Int64 = 50_000_000
  private static let longestStagger: Int64 = 2_000_000_000
}

extension RoutingConfiguration {
  /// In how many respects, of region and provider, an endpoint is not known to be where this machine is.
  func distance(to endpoint: ListedEndpoint) -> Int {
    let sameRegion = region != nil && endpoint.region == region
    let sameProvider = isp != nil && endpoint.isp == isp
    return (sameRegion ? 0 : 1) + (sameProvider ? 0 : 1)
  }
}
