package import FoundationEssentials
package import NetOptCore

/// Decides which endpoints are tried for a request, in which order, and learns from what became of them.
///
/// It opens no socket and reads no clock: it is told what happened and when, and answers with plans. A value, to be
/// kept in one place: whoever owns it sees to it that one call at a time changes it. Planning costs well under a
/// microsecond as long as nothing has changed, since the last plan of each origin is kept.
package struct RoutePlanner: Sendable {
  /// The most origins outside the list that are remembered. Beyond it they are all forgotten, which costs a little
  /// speed and nothing else.
  static let mostUnlisted = 1024

  /// The list, when there is one.
  package internal(set) var list: EndpointList?
  /// What routing was told about this machine and its wishes.
  package let configuration: RoutingConfiguration
  let seed: UInt64
  /// Whether what fails is this machine's network.
  var network = LocalNetwork()
  /// Before this no endpoint is looked at against which nothing is held.
  var nextLook: MonotonicInstant?
  /// The random numbers of jitter.
  var random: SplitMix64
  var hosts: [HostRoutes] = []
  var places: [Origin: Int] = [:]
  var unlisted = 0
  /// The places of the origins with endpoints that are suspected of not answering.
  var silent: [Int] = []
  /// The place that was asked for last: a client talks to one origin for a while, and names cost time to hash.
  var last: (origin: Origin, place: Int)?

  /// Makes a planner without history.
  ///
  /// - Parameters:
  ///   - list: the IP list, or `nil` to plan over DNS alone. Its expiry is looked at with each plan.
  ///   - seed: what this client draws by chance follows from it. Give each client another one.
  package init(
    list: EndpointList?, configuration: RoutingConfiguration = RoutingConfiguration(), seed: UInt64
  ) {
    self.list = list
    self.configuration = configuration
    self.seed = seed
    random = SplitMix64(seed: seed)
  }

  // MARK: Planning

  /// Makes the plan for a request.
  ///
  /// A pinned request gets its address alone, and any other one the proxy alone when there is one. A URL with an
  /// address in it goes there. For the rest the list decides: its endpoints, fastest first, then DNS.
  ///
  /// - Parameters:
  ///   - origin: what the request's URL names.
  ///   - options: of the request; `routing`, `family`, `verification`, `version` and `directDespiteProxy` count.
  ///   - proxy: the URL of the proxy that is set for this origin, if any.
  ///   - isUse: whether the origin is in use by that, so that its endpoints are probed. Default: yes.
  ///   - now: the present moment. A half-open endpoint's one attempt is taken by the plan that it leads.
  ///   - wall: the same moment by the calendar, asked for when the list expires some day.
  package mutating func plan(
    for origin: Origin, options: RequestOptions = RequestOptions(), proxy: String? = nil, isUse: Bool = true,
    now: MonotonicInstant, wall: @autoclosure () -> Date
  ) -> RoutePlan {
    if case .pinned(let address) = options.routing { return pinned(address, origin, options) }
    if let proxy, !options.directDespiteProxy {
      return plan([RoutePlan.Leg(.proxy, source: .dns)], .proxy, origin, options, through: proxy, at: now)
    }
    if options.routing == .automatic, let place = listedPlace(of: origin) {
      if let list, list.expires != nil, list.isExpired(at: wall()) {
        return plan(Self.dnsAlone, .expired, origin, options, at: now)
      }
      let wish = PlanWish(
        family: options.family, unverified: options.verification != .full,
        multiplexes: multiplexes(options, origin, hosts[place].speaksHTTP1),
        suspectsNetwork: suspectsNetwork(at: now))
      if isUse { hosts[place].used(at: now) }
      return hosts[place].plan(wish, at: now, using: &random)
    }
    let legs = origin.address.map { [RoutePlan.Leg(.address($0), source: .dns)] } ?? Self.dnsAlone
    return plan(legs, directOff(origin, options), origin, options, at: now)
  }

  /// Orders the answers of DNS for an origin, at the moment when they are there: as the resolver has them, but the
  /// address that won last comes first, so that its connections are used again, and those with an open circuit last.
  ///
  /// - Returns: the addresses, each with the time that it is given to be ready before the next one starts beside it.
  package func ordered(
    _ addresses: [IPAddress], for origin: Origin, at now: MonotonicInstant
  ) -> [(address: IPAddress, stagger: Duration)] {
    place(of: origin).map { hosts[$0].ordered(addresses, at: now) } ?? addresses.map { ($0, .defaultStagger) }
  }

  private static let dnsAlone = [RoutePlan.Leg(.dns, source: .dns)]

  private func pinned(_ address: IPAddress, _ origin: Origin, _ options: RequestOptions) -> RoutePlan {
    let isListed = entry(of: origin)?.endpoints.contains { $0.address == address } ?? false
    return RoutePlan(
      origin: origin, policy: .pinned, directOff: isListed ? nil : .flag,
      legs: [RoutePlan.Leg(.address(address), source: isListed ? .list : .dns)],
      multiplexes: multiplexes(options, origin, place(of: origin).map { hosts[$0].speaksHTTP1 }),
      verifies: options.verification == .full)
  }

  /// Whether this machine's network is taken to be down: two endpoints or more and DNS have failed within seconds, and
  /// nothing has worked since.
  package func suspectsNetwork(at now: MonotonicInstant) -> Bool {
    !network.isClear && network.isSuspected(at: now)
  }

  private func plan(
    _ legs: [RoutePlan.Leg], _ off: RoutePlan.DirectOff, _ origin: Origin, _ options: RequestOptions,
    through proxy: String? = nil, at now: MonotonicInstant
  ) -> RoutePlan {
    RoutePlan(
      origin: origin, proxy: proxy, policy: RoutePlan.Policy(configuration.policy), directOff: off,
      legs: legs,
      multiplexes: multiplexes(options, origin, place(of: origin).map { hosts[$0].speaksHTTP1 }),
      suspectsNetwork: network.isClear ? false : network.isSuspected(at: now),
      verifies: options.verification == .full)
  }

  private func directOff(_ origin: Origin, _ options: RequestOptions) -> RoutePlan.DirectOff {
    if options.routing == .dns { return .flag }
    guard let entry = list?.hosts[origin.host], !entry.endpoints.isEmpty else { return .noList }
    return entry.port == origin.port ? .noList : .port
  }

  private func multiplexes(_ options: RequestOptions, _ origin: Origin, _ speaksHTTP1: Bool?) -> Bool {
    origin.scheme == .https && options.version != .http1 && speaksHTTP1 != true
  }

  // MARK: Learning

  /// Notes that a request begins to take its way. Every plan for which this is called is given to `ended(_:)` once,
  /// when the answer began or the call failed. Only the policy `balanced` asks for it.
  package mutating func began(_ plan: RoutePlan) { changeInFlight(of: plan, by: 1) }

  /// Notes that a request has come to its end, or its answer to its beginning.
  package mutating func ended(_ plan: RoutePlan) { changeInFlight(of: plan, by: -1) }

  /// Gives back the one attempt of a half-open endpoint that a plan may have taken, and that is not made.
  package mutating func giveBackAttempt(of plan: RoutePlan, at now: MonotonicInstant) {
    guard let address = plan.legs[0].address, let place = place(of: plan.origin),
      hosts[place].index(of: address) != nil
    else { return }
    hosts[place].update(address, at: now) { $0.giveBack(at: now) }
  }

  private mutating func changeInFlight(of plan: RoutePlan, by change: Int) {
    guard configuration.policy == .balanced, let address = plan.legs[0].address,
      let place = place(of: plan.origin), let index = hosts[place].index(of: address)
    else { return }
    hosts[place].endpoints[index].inFlight = max(0, hosts[place].endpoints[index].inFlight + change)
  }

  /// Learns from a call how fast and how healthy its endpoints are.
  ///
  /// A leg that was ready is a success, also when another one won. A leg that a later one overtook although it had
  /// used up its stagger is a failure: otherwise an address that swallows packets would cost its stagger on every new
  /// connection. When the caller ended the call, the legs that were under way are nobody's fault. What the service
  /// answered counts for the leg that won.
  ///
  /// - Parameters:
  ///   - report: what became of the legs.
  ///   - outcome: what became of the request; `nil` when only the legs are known.
  ///   - begun: when the call began. What failed is not held against an endpoint that was seen to work since, nor is silence
  ///     when the call ended soon after it was sent.
  package mutating func record(
    _ report: RouteReport, outcome: CallOutcome? = nil, from begun: MonotonicInstant? = nil,
    at now: MonotonicInstant
  ) {
    let origin = report.plan.origin
    // Behind a proxy the addresses are the proxy's; and there is nothing to choose for an address in a URL.
    if report.plan.directOff == .proxy || origin.address != nil { return }
    let place = begin(origin)
    if hosts[place].recordNoNews(report, outcome, at: now) {
      if !network.isClear { network.succeeded() }
      return
    }
    let weighed = hosts[place].weighed(outcome, of: report, from: begun, at: now)
    if report.isShared {
      giveBackAttempt(of: report.plan, at: now)
      // The legs count with the call whose they are.
      guard let weighed, weighed != .unknown, let address = report.winner?.address else { return }
      hosts[place].record(shared: weighed, from: address, at: now, using: &random)
      return
    }
    judgeNetwork(by: report, weighed, at: now)
    hosts[place].record(
      report, weighed, from: begun, isFrozen: suspectsNetwork(at: now), at: now, using: &random)
  }

  /// Learns from a probe of an endpoint.
  ///
  /// - Parameters:
  ///   - result: what opening a connection took, or why it failed.
  ///   - address: the endpoint's address.
  ///   - origin: for which it was opened. For `https` a result without TLS is a measurement, but no success.
  ///   - begun: when it began. A failure is not held against an endpoint that was seen to work since.
  package mutating func record(
    probe result: Result<ConnectReport, LegError>, of address: IPAddress, for origin: Origin,
    from begun: MonotonicInstant? = nil, at now: MonotonicInstant
  ) {
    let place = begin(origin)
    switch result {
    case .success(let report): if !report.reused { network.succeeded() }
    case .failure(let error):
      if !error.isCancellation, Blame(error.failure.kind).isOfTheWay {
        network.failed(address, at: now)
        judgeNetwork(at: now)
      }
    }
    let isOld = isOld(result, from: begun, of: address, place)
    hosts[place].record(
      probe: result, of: address, isFrozen: suspectsNetwork(at: now) || isOld, at: now, using: &random)
  }

  /// Whether an endpoint was seen to work since a probe began that failed. A wrong certificate is one whatever else works: requests may do
  /// without verification.
  private func isOld(
    _ result: Result<ConnectReport, LegError>, from begun: MonotonicInstant?, of address: IPAddress,
    _ place: Int
  ) -> Bool {
    guard case .failure(let error) = result, let begun, Blame(error.failure.kind) != .certificate else {
      return false
    }
    return hosts[place].health(of: address)?.hasWorked(since: begun) ?? false
  }

  /// Looks for failures that come together: of endpoints and of DNS.
  private mutating func judgeNetwork(
    by report: RouteReport, _ outcome: CallOutcome?, at now: MonotonicInstant
  ) {
    var isReached = false
    var hasFailed = false
    for leg in report.legs {
      switch leg.outcome {
      // A stream that was reset has no failure: its connection is well.
      case .won where outcome == .silent || outcome == .broke && leg.failure != nil:
        hasFailed = true
        if let address = leg.address, leg.failure.map({ Blame($0.kind).isOfTheWay }) ?? true {
          network.failed(address, at: now)
        }
      case .won where leg.reused: if case .answered = outcome { isReached = true }
      case .won, .lost: isReached = true
      case .failed:
        guard let failure = leg.failure else { continue }
        hasFailed = true
        if let address = leg.address, Blame(failure.kind).isOfTheWay {
          network.failed(address, at: now)
        } else if failure.kind == .resolve {
          network.lookUpDidFail(at: now)
        }
      case .cancelled: break
      }
    }
    if isReached { network.succeeded() } else if hasFailed { judgeNetwork(at: now) }
  }

  private mutating func judgeNetwork(at now: MonotonicInstant) {
    guard network.judge(at: now) else { return }
    for place in hosts.indices {
      hosts[place].forgive(since: now + LocalNetwork.forgiven * -1, at: now)
    }
  }

  /// Learns which version of HTTP an origin answered in, and with it whether a leg that loses costs a connection.
  ///
  /// - Parameter options: of the request; an answer to a request for HTTP/1.1 shows nothing.
  package mutating func learned(version: HTTPVersion, for origin: Origin, options: RequestOptions) {
    if options.version == .http1 || origin.scheme == .http { return }
    let speaksHTTP1 = version == .http1_0 || version == .http1_1
    // What is not remembered is taken to multiplex.
    guard let place = speaksHTTP1 ? begin(origin) : place(of: origin) else { return }
    hosts[place].speaksHTTP1 = speaksHTTP1
  }

  // MARK: Asking

  /// The endpoints of the list that are worth probing for an origin, the nearest first. Those in quarantine are
  /// among them: a probe is what may release them.
  package func endpoints(toProbe origin: Origin) -> [IPEndpoint] {
    let routes = place(of: origin).map { hosts[$0] } ?? routes(to: origin)
    return routes.addressesToProbe.map { IPEndpoint($0, port: origin.port) }
  }

  /// The list's endpoints of an origin in the order of a plan made now; those that it leaves out come last.
  package func status(of origin: Origin, at now: MonotonicInstant) -> [EndpointStatus] {
    (place(of: origin).map { hosts[$0] } ?? routes(to: origin)).statuses(at: now)
  }

  // MARK: Origins

  /// The list's entry for an origin, when it has one for its port.
  func entry(of origin: Origin) -> HostEntry? {
    guard origin.address == nil, let entry = list?.hosts[origin.host], entry.port == origin.port else {
      return nil
    }
    return entry
  }

  func routes(to origin: Origin) -> HostRoutes {
    HostRoutes(
      origin, listed: entry(of: origin)?.endpoints ?? [], configuration: configuration, seed: seed)
  }

  /// What is known of an origin that is remembered.
  func routes(known origin: Origin) -> HostRoutes? { place(of: origin).map { hosts[$0] } }

  /// The place of an origin that is remembered.
  private func place(of origin: Origin) -> Int? {
    if let last, last.origin == origin { return last.place }
    return places[origin]
  }

  /// The place of an origin that has endpoints in the list.
  mutating func listedPlace(of origin: Origin) -> Int? {
    if place(of: origin) == nil, entry(of: origin)?.endpoints.isEmpty ?? true { return nil }
    let place = begin(origin)
    return hosts[place].endpoints.isEmpty ? nil : place
  }

  /// Begins to remember an origin, unless it is remembered already.
  ///
  /// - Returns: its place.
  mutating func begin(_ origin: Origin) -> Int {
    if let last, last.origin == origin { return last.place }
    let place = places[origin] ?? add(routes(to: origin))
    last = (origin, place)
    return place
  }

  private mutating func add(_ routes: HostRoutes) -> Int {
    if routes.endpoints.isEmpty {
      if unlisted == Self.mostUnlisted { forgetUnlisted() }
      unlisted += 1
    }
    places[routes.origin] = hosts.count
    hosts.append(routes)
    return hosts.count - 1
  }

  mutating func forgetUnlisted() {
    hosts.removeAll { $0.endpoints.isEmpty }
    places = Dictionary(uniqueKeysWithValues: hosts.indices.map { (hosts[$0].origin, $0) })
    unlisted = 0
    last = nil
    noteSilent()
  }
}
