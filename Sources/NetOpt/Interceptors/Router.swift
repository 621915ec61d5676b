import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptRouting
import Synchronization

/// The route planner behind a lock, with the clocks and the proxies that the planner needs. Safe from any
/// thread.
final class Router: Sendable {
  private let planner: Locked<RoutePlanner>
  private let timeSource: any TimeSource
  private let proxies: ProxyChoice
  /// When this machine joined its current network, in nanoseconds of the monotonic clock; `.min` until the
  /// first change of the network. Calls and probes that began earlier say nothing about this network.
  private let networkBegan = Atomic<Int64>(.min)

  init(
    _ list: EndpointList?, _ configuration: ClientConfiguration,
    _ timeSource: any TimeSource = SystemTimeSource()
  ) {
    var routing = configuration.routing
    routing.probesInBackground = configuration.probing.inBackground
    planner = Locked(
      RoutePlanner(list: list, configuration: routing, seed: UInt64.random(in: .min ... .max)))
    self.timeSource = timeSource
    proxies = ProxyChoice(configuration.proxy)
  }

  /// Plans the route of a request, and notes that the plan is in use (`RoutePlanner.began`).
  private func plan(for request: NetOptRequest, countsAsUse: Bool) -> RoutePlan {
    let origin = request.url.origin
    let proxy = proxies.proxy(for: origin)
    let now = timeSource.now()
    return planner.withLock {
      let plan = $0.plan(
        for: origin, options: request.options, proxy: proxy, countsAsUse: countsAsUse, now: now, wall: Date())
      $0.began(plan)
      return plan
    }
  }

  /// Plans the route of an attempt, and notes that the plan is in use. The caller must later pass the plan
  /// exactly once to `ended`, or to one of the two `record` functions with the parameter `along`.
  ///
  /// - Parameters:
  ///   - attempt: the attempt; `nil` for the first attempt of a call that gets no hedge.
  ///   - countsAsUse: whether the call counts as use of the origin, whose endpoints the client then probes.
  /// - Throws: `connectFailed` when the attempt must go to another endpoint and there is none.
  @inline(never)
  func plan(for request: NetOptRequest, _ attempt: Attempt?, countsAsUse: Bool = true) throws(NetOptError)
    -> RoutePlan
  {
    guard let attempt else { return plan(for: request, countsAsUse: countsAsUse) }
    let usual = plan(for: request, countsAsUse: countsAsUse)
    let plan = if let avoidance = attempt.avoidance { usual.avoiding(avoidance) } else { RoutePlan?(usual) }
    let now = timeSource.now()
    planner.withLock {
      $0.ended(usual)
      if let plan { $0.began(plan) }
      // `usual` may have taken the one attempt of a half-open endpoint. A plan that begins with another leg
      // does not make this attempt, so it is given back.
      if plan?.legs[0] != usual.legs[0] { $0.giveBackAttempt(of: usual, at: now) }
    }
    guard let plan else {
      throw NetOptError(
        .connectFailed, phase: .connect, "no other endpoint is available for a second copy of the request")
    }
    attempt.recordPlan(plan)
    return plan
  }

  /// The shortest time that a further attempt of a call could take.
  ///
  /// - Parameters:
  ///   - outcome: the outcome of the last attempt.
  ///   - avoided: the addresses at which earlier attempts failed.
  func leastAttempt(after outcome: RetryPolicy.Outcome, avoiding avoided: [IPAddress]) -> Duration {
    guard let plan = outcome.route?.plan else { return .zero }
    let avoided = avoided + outcome.failedAddresses
    return planner.withLock { $0.leastAttempt(after: plan, avoiding: avoided) }
  }

  /// Whether requests to an origin of the list may go to its endpoints: no proxy is set for the origin, and
  /// the list has not expired.
  func isDirect(_ origin: Origin) -> Bool {
    guard proxies.proxy(for: origin) == nil else { return false }
    return planner.withLock { $0.list?.isExpired(at: Date()) != true }
  }

  /// Makes the planner use another list from now on. The planner keeps the measurements of endpoints that are
  /// in both lists.
  func adopt(_ list: EndpointList) {
    let now = timeSource.now()
    planner.withLock { $0.adopt(list, at: now) }
  }

  /// Records the response to a request.
  ///
  /// - Parameters:
  ///   - route: the route report of the response.
  ///   - plan: the plan of the request; `nil` when it was not planned.
  ///   - started: when the call began.
  func record(
    _ response: NetOptResponse, by route: RouteReport, to request: NetOptRequest, along plan: RoutePlan?,
    started: MonotonicInstant
  ) {
    let outcome = CallOutcome(response)
    let now = timeSource.now()
    planner.withLock {
      if let plan { $0.ended(plan) }
      if isFromCurrentNetwork(started) {
        $0.record(route, outcome: outcome, from: started, at: now)
        $0.answered(request, along: route, outcome, status: response.status, from: started)
      }
      $0.learned(version: response.version, for: route.plan.origin, options: request.options)
    }
  }

  /// Records the error of a request.
  ///
  /// - Parameters:
  ///   - plan: the plan of the request; `nil` when it was not planned.
  ///   - started: when the call began.
  /// - Returns: the error for the caller. If the request found no connection, its message also says whether the
  ///   list has the host for another port, and whether the planner suspects this machine's network.
  func record(_ error: NetOptError, along plan: RoutePlan?, started: MonotonicInstant) -> NetOptError {
    let now = timeSource.now()
    let isSuspected = planner.withLock {
      if let plan { $0.ended(plan) }
      if isFromCurrentNetwork(started), let route = error.route {
        $0.record(route, outcome: CallOutcome(error), from: started, at: now)
      }
      return $0.suspectsNetwork(at: now)
    }
    guard [.connect, .tls, .resolve].contains(error.phase) else { return error }
    var error = error
    if let plan, let port = plan.listedPort {
      error = error.with(
        otherAttempts: error.otherAttempts,
        adding:
          "the IP list has \(plan.origin.host) for port \(port), so it is not used for port \(plan.origin.port)"
      )
    }
    if isSuspected {
      error = error.with(
        otherAttempts: error.otherAttempts,
        adding: "several addresses and DNS failed together: check this machine's network")
    }
    return error
  }

  /// Notes that a plan is no longer in use, because its request has ended.
  func ended(_ plan: RoutePlan) { planner.withLock { $0.ended(plan) } }

  /// Records the result of a warm-up, which opened a connection ahead of requests.
  ///
  /// - Parameters:
  ///   - route: the route report of the connection attempts.
  ///   - started: when the attempts began.
  func record(_ route: RouteReport, started: MonotonicInstant) {
    withPlanner { planner, now in
      if isFromCurrentNetwork(started) { planner.record(route, from: started, at: now) }
    }
  }

  /// Records the result of a probe of an endpoint.
  ///
  /// - Parameters:
  ///   - address: the address of the endpoint.
  ///   - started: when the probe began.
  func record(
    probe result: Result<ConnectReport, LegError>, of address: IPAddress, for origin: Origin,
    started: MonotonicInstant
  ) {
    withPlanner { planner, now in
      if isFromCurrentNetwork(started) {
        planner.record(probe: result, of: address, for: origin, from: started, at: now)
      }
    }
  }

  /// Records the round trip of an echo request to an endpoint.
  ///
  /// - Parameters:
  ///   - address: the address of the endpoint.
  ///   - started: when the echo request was sent.
  func record(
    roundTrip: Duration, of address: IPAddress, for origin: Origin, started: MonotonicInstant
  ) {
    withPlanner { planner, now in
      if isFromCurrentNetwork(started) {
        planner.record(roundTrip: roundTrip, of: address, for: origin, at: now)
      }
    }
  }

  /// Whether a call or probe that began at `started` began in the current network. The answer holds only
  /// under the planner's lock: `beginNetwork` changes the network under this lock.
  func isFromCurrentNetwork(_ started: MonotonicInstant) -> Bool {
    started.nanoseconds >= networkBegan.load(ordering: .relaxed)
  }

  /// Makes the planner start anew, because this machine has joined another network.
  ///
  /// - Parameters:
  ///   - date: the present moment as a calendar date.
  ///   - history: the ranking of the new network from an earlier stay; `nil` when there is none.
  /// - Returns: `left`, the ranking of the network that this machine has left; and `known`, the names of the
  ///   hosts for which the planner uses `history`.
  func beginNetwork(at date: Date, knowing history: RouteHistory? = nil) -> (
    left: RouteHistory, known: Set<String>
  ) {
    withPlanner { planner, now in
      networkBegan.store(now.nanoseconds, ordering: .relaxed)
      let left = planner.history(at: now, date: date)
      planner.networkChanged(at: now)
      return (left, history.map { planner.adopt($0, at: now, date: date) } ?? [])
    }
  }

  /// Returns the origin that requests to a host of the list used last (`RoutePlanner.usedOrigin`).
  func usedOrigin(of host: String) -> Origin? { planner.withLock { $0.usedOrigin(of: host) } }

  /// Runs a closure with the planner and the present moment, under the planner's lock.
  func withPlanner<Result: Sendable>(_ body: (inout sending RoutePlanner, MonotonicInstant) -> sending Result)
    -> sending Result
  {
    let now = timeSource.now()
    return planner.withLock { body(&$0, now) }
  }
}
