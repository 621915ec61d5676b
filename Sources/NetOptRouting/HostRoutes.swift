import NetOptCore

/// What is known of the ways to one origin: its endpoints in the list, and the addresses that DNS gave for it.
struct HostRoutes: Sendable {
  /// An endpoint of the list and its health.
  struct Endpoint: Sendable {
    let listed: ListedEndpoint
    /// In how many respects, of region and provider, it is not where this machine is.
    let distance: Int
    var health = EndpointHealth()
  }

  /// An address that DNS gave and its health.
  struct Answer: Sendable {
    var health = EndpointHealth()
    var heardOf: MonotonicInstant
  }

  /// The most addresses from DNS that are remembered for an origin.
  static let mostAnswers = 64

  let origin: Origin
  let policy: SelectionPolicy
  /// The number by which this client chooses among endpoints that are equally fast.
  let draw: UInt64
  var endpoints: [Endpoint]
  private let indices: [IPAddress: Int]
  var answers: [IPAddress: Answer] = [:]
  /// The address from DNS that won last: it has the pooled connections.
  var lastAnswer: IPAddress?
  /// The index of the endpoint that is in use.
  var leader: Int?
  /// The plan that was made last.
  var kept: KeptPlan?
  /// An address of which one more success on a pooled connection changes nothing: most reports are of that kind.
  private var settled: IPAddress?
  /// Whether the origin's servers were seen to speak HTTP/1.1 alone.
  var speaksHTTP1 = false

  /// Makes the state of an origin of which nothing is known yet.
  ///
  /// - Parameter listed: its endpoints in the list. Of several with one address, the first counts.
  init(_ origin: Origin, listed: [ListedEndpoint], configuration: RoutingConfiguration, seed: UInt64) {
    self.origin = origin
    policy = configuration.policy
    var endpoints: [Endpoint] = []
    var indices: [IPAddress: Int] = [:]
    for endpoint in listed where indices[endpoint.address] == nil {
      indices[endpoint.address] = endpoints.count
      endpoints.append(Endpoint(listed: endpoint, distance: configuration.distance(to: endpoint)))
    }
    self.endpoints = endpoints
    self.indices = indices
    // FNV-1a: Swift's own hashes differ from run to run.
    let name = origin.description.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    var random = SplitMix64(seed: seed ^ name)
    draw = random.next()
  }

  /// The health of an address, listed or from DNS.
  func health(of address: IPAddress) -> EndpointHealth? {
    indices[address].map { endpoints[$0].health } ?? answers[address]?.health
  }

  /// Whether an address is in the list.
  func lists(_ address: IPAddress) -> Bool { indices[address] != nil }

  /// Changes the health of an address. One that is not in the list is remembered as an answer from DNS.
  ///
  /// - Parameter change: makes the change and says whether there was one.
  mutating func update(
    _ address: IPAddress, at now: MonotonicInstant, _ change: (inout EndpointHealth) -> Bool
  ) {
    settled = nil
    if let index = indices[address] {
      if change(&endpoints[index].health) { kept = nil }
      return
    }
    if answers[address] == nil, answers.count >= Self.mostAnswers {
      let oldest = answers.min { ($0.value.heardOf, $0.key) < ($1.value.heardOf, $1.key) }
      if let oldest { answers[oldest.key] = nil }
    }
    var answer = answers[address] ?? Answer(heardOf: now)
    answer.heardOf = now
    _ = change(&answer.health)
    answers[address] = answer
  }

  /// Notes which address won.
  mutating func won(_ address: IPAddress, from source: AddressSource) {
    if source == .dns { lastAnswer = address }
    settled = health(of: address)?.isClear == true ? address : nil
  }

  /// Whether a report says what is known: that an address works of which nothing else was ever heard.
  func isNoNews(_ report: RouteReport) -> Bool {
    guard let settled, report.legs.count == 1, report.legs[0].address == settled, report.legs[0].reused,
      report.legs[0].outcome == .won
    else { return false }
    // Otherwise the plan may have taken the one attempt of a half-open endpoint.
    return report.plan.legs[0].address == settled || report.plan.legs[0].source == .dns
  }

  /// Answers from DNS in the order in which they are tried, each with the time that it is given to be ready.
  func ordered(
    _ addresses: [IPAddress], at now: MonotonicInstant
  ) -> [(address: IPAddress, stagger: Duration)] {
    var front: [(address: IPAddress, stagger: Duration)] = []
    var back = front
    for address in addresses {
      let health = health(of: address)
      let leg = (address, stagger(health))
      switch health?.state(at: now) {
      case .open, .quarantined: back.append(leg)
      default: front.insert(leg, at: address == lastAnswer ? 0 : front.count)
      }
    }
    return front + back
  }

  /// How long a leg is given to be ready before the next one starts beside it: as long as nearly every connection
  /// to it takes.
  func stagger(_ health: EndpointHealth?) -> Duration {
    guard let estimate = health?.readiness(secure: origin.scheme == .https) else { return .defaultStagger }
    return min(max(estimate.bound, Self.shortestStagger), Self.longestStagger)
  }

  private static let shortestStagger = Duration.milliseconds(50)
  private static let longestStagger = Duration.seconds(2)
}

extension RoutingConfiguration {
  /// In how many respects, of region and provider, an endpoint is not known to be where this machine is.
  func distance(to endpoint: ListedEndpoint) -> Int {
    let sameRegion = region != nil && endpoint.region == region
    let sameProvider = isp != nil && endpoint.isp == isp
    return (sameRegion ? 0 : 1) + (sameProvider ? 0 : 1)
  }
}
