package import FoundationEssentials
package import NetOptCore

/// Plans which endpoints a request tries and in which order, and learns from the outcomes.
///
/// The planner opens no socket and reads no clock: callers pass events with their moments, and get plans. It
/// is a value type. Its owner must make sure that only one call at a time changes it. Planning takes well
/// under 1 µs as long as nothing has changed, because the planner keeps the last plan of each origin.
package struct RoutePlanner: Sendable {
  /// The maximum number of remembered origins outside the list. When one more would exceed it, the planner
  /// forgets all of these origins. This costs only a little speed.
  static let mostUnlisted = 1024

  /// The list, if there is one.
  package internal(set) var list: EndpointList?
  /// The settings of routing for this machine.
  package let configuration: RoutingConfiguration
  /// The seed of `random`, and a part of the seed of each `HostRoutes.draw`.
  let seed: UInt64
  /// Tells failures of this machine's network from failures of endpoints.
  var network = LocalNetwork()
  /// When the next routine probe may begin: `routineProbeSpacing` after the last one; `nil` before the first.
  var nextRoutineProbe: MonotonicInstant?
  /// The source of random numbers, for jitter and for choices.
  var random: SplitMix64
  /// The remembered origins.
  var hosts: [HostRoutes] = []
  /// The index in `hosts` of each remembered origin.
  var hostIndices: [Origin: Int] = [:]
  /// The number of elements of `hosts` without listed endpoints.
  var unlisted = 0
  /// The indices in `hosts` of the origins with endpoints that are suspected of being silent.
  var silentHostIndices: [Int] = []
  /// The last origin that was looked up, and its index in `hosts`. A client uses one origin for a while, and
  /// hashing names takes time.
  var last: (origin: Origin, hostIndex: Int)?

  /// Makes a planner without history.
  ///
  /// - Parameters:
  ///   - list: the IP list, or `nil` to plan with DNS alone. Each plan checks whether the list has expired.
  ///   - seed: the seed of the planner's random numbers. Give each client a different seed.
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
  /// The first rule that applies decides which legs the plan has:
  ///
  /// 1. For a pinned request: the pinned address alone.
  /// 2. For a request through a proxy: the proxy alone.
  /// 3. For a URL whose host is an IP address: this address alone.
  /// 4. For a request that asks for DNS, for a host that the list does not contain or contains with another
  ///    port, and for an expired list: DNS alone.
  /// 5. For all other requests: the usable endpoints of the list, then DNS, then the last resorts. The policy
  ///    chooses the first endpoint. When no endpoint is usable, one last resort comes first, before DNS. When
  ///    there is no last resort either: DNS alone.
  ///
  /// - Parameters:
  ///   - origin: the origin of the request's URL.
  ///   - options: the options of the request. The planner reads `routing`, `family`, `verification`,
  ///     `version` and `directDespiteProxy`.
  ///   - proxy: the URL of the proxy that is set for this origin, if any.
  ///   - countsAsUse: whether the plan marks the origin as in use, so that its endpoints are probed. Default:
  ///     yes.
  ///   - now: the present moment. If the first leg goes to a half-open endpoint, the plan takes this
  ///     endpoint's one attempt.
  ///   - wall: the same moment as a calendar date. Evaluated only when the list has an expiry date.
  package mutating func plan(
    for origin: Origin, options: RequestOptions = RequestOptions(), proxy: String? = nil,
    countsAsUse: Bool = true,
    now: MonotonicInstant, wall: @autoclosure () -> Date
  ) -> RoutePlan {
    if case .pinned(let address) = options.routing { return pinned(address, origin, options) }
    if let proxy, !options.directDespiteProxy {
      return plan([RoutePlan.Leg(.proxy, source: .dns)], .proxy, origin, options, through: proxy, at: now)
    }
    if options.routing == .automatic, let hostIndex = listedHostIndex(of: origin) {
      if let list, list.expires != nil, list.isExpired(at: wall()) {
        return plan(Self.dnsAlone, .expired, origin, options, at: now)
      }
      let constraints = PlanConstraints(
        family: options.family, unverified: options.verification != .full,
        multiplexes: multiplexes(options, origin, hosts[hostIndex].speaksHTTP1),
        suspectsNetwork: suspectsNetwork(at: now))
      if countsAsUse { hosts[hostIndex].used(at: now) }
      return hosts[hostIndex].plan(constraints, at: now, using: &random)
    }
    let legs = origin.address.map { [RoutePlan.Leg(.address($0), source: .dns)] } ?? Self.dnsAlone
    return plan(legs, directOff(origin, options), origin, options, at: now)
  }

  /// Orders an origin's addresses from DNS when they arrive. The order of the resolver stays, with two
  /// exceptions. The address that won last comes first, so that its connections are reused. Addresses with an
  /// open circuit breaker or in quarantine come last.
  ///
  /// - Returns: the addresses, each with its stagger: the time after which the next address is tried in
  ///   parallel.
  package func ordered(
    _ addresses: [IPAddress], for origin: Origin, at now: MonotonicInstant
  ) -> [(address: IPAddress, stagger: Duration)] {
    hostIndex(of: origin).map { hosts[$0].ordered(addresses, at: now) }
      ?? addresses.map { ($0, .defaultStagger) }
  }

  /// The legs of a plan that uses DNS alone.
  private static let dnsAlone = [RoutePlan.Leg(.dns, source: .dns)]

  /// Makes the plan of a request that names the address of its endpoint.
  private func pinned(_ address: IPAddress, _ origin: Origin, _ options: RequestOptions) -> RoutePlan {
    let isListed = entry(of: origin)?.endpoints.contains { $0.address == address } ?? false
    return RoutePlan(
      origin: origin, policy: .pinned, directOff: isListed ? nil : .requested,
      legs: [RoutePlan.Leg(.address(address), source: isListed ? .list : .dns)],
      multiplexes: multiplexes(options, origin, hostIndex(of: origin).map { hosts[$0].speaksHTTP1 }),
      verifies: options.verification == .full)
  }

  /// Whether the planner takes this machine's network to be down: at least two endpoints and DNS have failed
  /// within 5 s (`LocalNetwork.window`), and nothing has worked since. Without further failures, this ends
  /// after 30 s.
  package func suspectsNetwork(at now: MonotonicInstant) -> Bool {
    !network.hasNoFailures && network.isSuspected(at: now)
  }

  /// Makes the plan of a request that does not use the list. `reason` says why it does not.
  private func plan(
    _ legs: [RoutePlan.Leg], _ reason: RoutePlan.DirectOff, _ origin: Origin, _ options: RequestOptions,
    through proxy: String? = nil, at now: MonotonicInstant
  ) -> RoutePlan {
    RoutePlan(
      origin: origin, proxy: proxy, policy: RoutePlan.Policy(configuration.policy), directOff: reason,
      listedPort: reason == .port ? list?.hosts[origin.host]?.port : nil, legs: legs,
      multiplexes: multiplexes(options, origin, hostIndex(of: origin).map { hosts[$0].speaksHTTP1 }),
      suspectsNetwork: network.hasNoFailures ? false : network.isSuspected(at: now),
      verifies: options.verification == .full)
  }

  /// Why a request does not use the list. The callers handle proxies, pinned addresses and expired lists
  /// before.
  private func directOff(_ origin: Origin, _ options: RequestOptions) -> RoutePlan.DirectOff {
    if options.routing == .dns { return .requested }
    guard let entry = list?.hosts[origin.host], !entry.endpoints.isEmpty else { return .noList }
    // If the ports differ, the reason is the port. Equal ports come here only if the URL's host is an IP
    // address: `entry(of:)` does not look up IP addresses in the list.
    return entry.port == origin.port ? .noList : .port
  }

  /// Whether a connection to an origin is expected to carry many requests at once (HTTP/2). True for an
  /// `https` origin until a response has shown HTTP/1. `speaksHTTP1` is `nil` for an origin that is not
  /// remembered.
  private func multiplexes(_ options: RequestOptions, _ origin: Origin, _ speaksHTTP1: Bool?) -> Bool {
    origin.scheme == .https && options.version != .http1 && speaksHTTP1 != true
  }

  // MARK: Learning

  /// Notes that a request begins to use its plan. The caller must pass each such plan to `ended(_:)` once,
  /// when the response begins or the call fails. Only the policy `balanced` needs these calls.
  package mutating func began(_ plan: RoutePlan) { changeInFlight(of: plan, by: 1) }

  /// Notes that a request has ended, or that its response has begun.
  package mutating func ended(_ plan: RoutePlan) { changeInFlight(of: plan, by: -1) }

  /// Gives back the one attempt of a half-open endpoint that a plan may have taken, when the request does not
  /// use the plan.
  package mutating func giveBackAttempt(of plan: RoutePlan, at now: MonotonicInstant) {
    guard let address = plan.legs[0].address, let hostIndex = hostIndex(of: plan.origin),
      hosts[hostIndex].index(of: address) != nil
    else { return }
    hosts[hostIndex].update(address, at: now) { $0.giveBack(at: now) }
  }

  /// Changes the number of requests under way (`inFlight`) of a plan's first endpoint.
  private mutating func changeInFlight(of plan: RoutePlan, by change: Int) {
    guard configuration.policy == .balanced, let address = plan.legs[0].address,
      let hostIndex = hostIndex(of: plan.origin), let index = hosts[hostIndex].index(of: address)
    else { return }
    hosts[hostIndex].endpoints[index].inFlight = max(0, hosts[hostIndex].endpoints[index].inFlight + change)
  }

  /// Learns the speed and health of endpoints from a call.
  ///
  /// A leg that was ready counts as a success, even when another leg won. A leg counts as a failure when it
  /// had used up its stagger and a leg that started later won. If it did not count, an address that drops all
  /// packets would delay every new connection by its stagger. Legs that were under way when the caller ended
  /// the call do not count. The outcome of the request counts for the endpoint of the leg that won.
  ///
  /// - Parameters:
  ///   - report: the outcomes of the legs.
  ///   - outcome: the outcome of the request; `nil` when only the legs are known, as for a warm-up.
  ///   - begun: when the call began; `nil` when unknown. The failure of a leg does not count against an
  ///     endpoint that was seen to work after the leg started. A missing response does not count when the
  ///     call ended soon after its request was sent.
  package mutating func record(
    _ report: RouteReport, outcome: CallOutcome? = nil, from begun: MonotonicInstant? = nil,
    at now: MonotonicInstant
  ) {
    let origin = report.plan.origin
    // Behind a proxy, the addresses are those of the proxy. For an IP address in a URL, there is no choice to
    // make.
    if report.plan.directOff == .proxy || origin.address != nil { return }
    let hostIndex = begin(origin)
    if hosts[hostIndex].recordIfUnchanged(report, outcome, at: now) {
      if !network.hasNoFailures { network.succeeded() }
      return
    }
    // A shared race without a winner is recorded once, with the report of the call that started it.
    if report.isShared { return giveBackAttempt(of: report.plan, at: now) }
    let adjusted = hosts[hostIndex].adjustedOutcome(outcome, of: report, from: begun, at: now)
    judgeNetwork(by: report, adjusted, at: now)
    hosts[hostIndex].record(
      report, adjusted, from: begun, isFrozen: suspectsNetwork(at: now), at: now, using: &random)
  }

  /// Learns from a probe of an endpoint.
  ///
  /// - Parameters:
  ///   - result: the times of opening a connection, or the failure.
  ///   - address: the endpoint's address.
  ///   - origin: the origin for which the connection was opened. For `https`, a new connection without TLS is
  ///     only a measurement and does not count as a success.
  ///   - begun: when the probe began; `nil` when unknown. A failure does not count against an endpoint that
  ///     was seen to work after this moment.
  package mutating func record(
    probe result: Result<ConnectReport, LegError>, of address: IPAddress, for origin: Origin,
    from begun: MonotonicInstant? = nil, at now: MonotonicInstant
  ) {
    let hostIndex = begin(origin)
    switch result {
    case .success(let report): if !report.reused { network.succeeded() }
    case .failure(let error):
      if !error.isInconclusive, FailureCause(error.failure.kind).mayBeLocalNetwork {
        network.failed(address, at: now)
        judgeNetwork(at: now)
      }
    }
    let isOld = isOld(result, from: begun, of: address, hostIndex)
    hosts[hostIndex].record(
      probe: result, of: address, isFrozen: suspectsNetwork(at: now) || isOld, at: now, using: &random)
  }

  /// Whether a probe failed and its failure is outdated, because the endpoint was seen to work after the
  /// probe began. The failure of a wrong certificate is never outdated, because the later success may belong
  /// to a request without verification.
  private func isOld(
    _ result: Result<ConnectReport, LegError>, from begun: MonotonicInstant?, of address: IPAddress,
    _ hostIndex: Int
  ) -> Bool {
    guard case .failure(let error) = result, let begun,
      FailureCause(error.failure.kind) != .certificate
    else { return false }
    return hosts[hostIndex].health(of: address)?.hasWorked(since: begun) ?? false
  }

  /// Tells `network` what a call shows about this machine's network: an endpoint was reached, or endpoints or
  /// DNS failed.
  private mutating func judgeNetwork(
    by report: RouteReport, _ outcome: CallOutcome?, at now: MonotonicInstant
  ) {
    var isReached = false
    var hasFailed = false
    for leg in report.legs {
      switch leg.outcome {
      // A leg whose stream was reset has no failure: its connection works.
      case .won where outcome == .silent || outcome == .broke && leg.failure != nil:
        hasFailed = true
        if let address = leg.address, leg.failure.map({ FailureCause($0.kind).mayBeLocalNetwork }) ?? true {
          network.failed(address, at: now)
        }
      case .won where leg.reused: if case .answered = outcome { isReached = true }
      case .won, .lost: isReached = true
      case .failed:
        guard let failure = leg.failure else { continue }
        hasFailed = true
        if let address = leg.address, FailureCause(failure.kind).mayBeLocalNetwork {
          network.failed(address, at: now)
        } else if failure.kind == .resolve {
          network.lookUpDidFail(at: now)
        }
      case .cancelled: break
      }
    }
    if isReached { network.succeeded() } else if hasFailed { judgeNetwork(at: now) }
  }

  /// Decides whether the planner suspects this machine's network. When a suspicion begins, undoes the
  /// failures of the last minute at all endpoints.
  private mutating func judgeNetwork(at now: MonotonicInstant) {
    guard network.judge(at: now) else { return }
    for hostIndex in hosts.indices {
      hosts[hostIndex].undoFailures(since: now + LocalNetwork.undoWindow * -1, at: now)
    }
  }

  /// Learns from a response which HTTP version an origin speaks. With HTTP/1, each leg that loses a race
  /// loses its connection.
  ///
  /// - Parameter options: the options of the request. A response to a request that allowed only HTTP/1.1 is
  ///   ignored, because it shows nothing.
  package mutating func learned(version: HTTPVersion, for origin: Origin, options: RequestOptions) {
    if options.version == .http1 || origin.scheme == .http { return }
    let speaksHTTP1 = version == .http1_0 || version == .http1_1
    // An origin that the planner does not remember counts as an HTTP/2 origin.
    guard let hostIndex = speaksHTTP1 ? begin(origin) : hostIndex(of: origin) else { return }
    hosts[hostIndex].speaksHTTP1 = speaksHTTP1
  }

  // MARK: Queries

  /// The listed endpoints to probe for an origin, the nearest first. Includes endpoints in quarantine,
  /// because a probe can release them.
  package func endpoints(toProbe origin: Origin) -> [IPEndpoint] {
    let routes = hostIndex(of: origin).map { hosts[$0] } ?? routes(to: origin)
    return routes.addressesToProbe.map { IPEndpoint($0, port: origin.port) }
  }

  // MARK: Origins

  /// The list's entry for an origin; `nil` when the list has no entry for the origin's host and port.
  func entry(of origin: Origin) -> HostEntry? {
    guard origin.address == nil, let entry = list?.hosts[origin.host], entry.port == origin.port else {
      return nil
    }
    return entry
  }

  /// Makes the state of an origin that is not remembered.
  func routes(to origin: Origin) -> HostRoutes {
    HostRoutes(
      origin, listed: entry(of: origin)?.endpoints ?? [], configuration: configuration, seed: seed)
  }

  /// The state of a remembered origin; `nil` for other origins.
  func routes(known origin: Origin) -> HostRoutes? { hostIndex(of: origin).map { hosts[$0] } }

  /// The index in `hosts` of a remembered origin; `nil` for other origins.
  private func hostIndex(of origin: Origin) -> Int? {
    if let last, last.origin == origin { return last.hostIndex }
    return hostIndices[origin]
  }

  /// The index in `hosts` of an origin with listed endpoints. Begins to remember such an origin. `nil` when
  /// the list has no endpoints for the origin.
  mutating func listedHostIndex(of origin: Origin) -> Int? {
    let hostIndex: Int
    if let last, last.origin == origin {
      hostIndex = last.hostIndex
    } else {
      if hostIndices[origin] == nil, entry(of: origin)?.endpoints.isEmpty ?? true { return nil }
      hostIndex = begin(origin)
    }
    return hosts[hostIndex].endpoints.isEmpty ? nil : hostIndex
  }

  /// Begins to remember an origin, unless it is remembered already.
  ///
  /// - Returns: the origin's index in `hosts`.
  mutating func begin(_ origin: Origin) -> Int {
    if let last, last.origin == origin { return last.hostIndex }
    let hostIndex = hostIndices[origin] ?? add(routes(to: origin))
    last = (origin, hostIndex)
    return hostIndex
  }

  /// Remembers an origin and returns its index. Forgets unlisted origins first when there are too many.
  private mutating func add(_ routes: HostRoutes) -> Int {
    if routes.endpoints.isEmpty {
      if unlisted == Self.mostUnlisted { forgetUnlisted() }
      unlisted += 1
    }
    hostIndices[routes.origin] = hosts.count
    hosts.append(routes)
    return hosts.count - 1
  }

  /// Forgets all origins without listed endpoints.
  mutating func forgetUnlisted() {
    hosts.removeAll { $0.endpoints.isEmpty }
    hostIndices = Dictionary(uniqueKeysWithValues: hosts.indices.map { (hosts[$0].origin, $0) })
    unlisted = 0
    last = nil
    updateSilentHosts()
  }
}
