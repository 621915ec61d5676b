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
  /// When this machine joined its current network. The result of a call or probe that began earlier says
  /// nothing about this network.
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

  private func plan(for request: NetOptRequest, isUse: Bool) -> RoutePlan {
    let origin = request.url.origin
    let proxy = proxies.proxy(for: origin)
    let now = timeSource.now()
    return planner.withLock {
      let plan = $0.plan(
        for: origin, options: request.options, proxy: proxy, isUse: isUse, now: now, wall: Date())
      $0.began(plan)
      return plan
    }
  }

  /// Plans the route of an attempt.
  ///
  /// - Parameters:
  ///   - attempt: the attempt; `nil` for a call with only one attempt.
  ///   - isUse: whether the call counts as use of the origin, for which the client probes endpoints.
  /// - Throws: `connectFailed` when the attempt must go to another endpoint and there is none.
  @inline(never)
  func plan(for request: NetOptRequest, _ attempt: Attempt?, isUse: Bool = true) throws(NetOptError)
    -> RoutePlan
  {
    guard let attempt else { return plan(for: request, isUse: isUse) }
    let usual = plan(for: request, isUse: isUse)
    let plan = if let avoidance = attempt.avoidance { usual.avoiding(avoidance) } else { RoutePlan?(usual) }
    let now = timeSource.now()
    planner.withLock {
      $0.ended(usual)
      if let plan { $0.began(plan) }
      // If the plan begins with another leg, the single attempt of a half-open endpoint that `usual` may have
      // taken is not made.
      if plan?.legs[0] != usual.legs[0] { $0.giveBackAttempt(of: usual, at: now) }
    }
    guard let plan else {
      throw NetOptError(
        .connectFailed, phase: .connect, "no other endpoint is available for a second copy of the request")
    }
    attempt.isPlanned(plan)
    return plan
  }

  /// The shortest time that another attempt of a call takes.
  ///
  /// - Parameters:
  ///   - outcome: the outcome of the last attempt.
  ///   - avoided: the addresses where earlier attempts failed.
  func leastAttempt(after outcome: RetryPolicy.Outcome, avoiding avoided: [IPAddress]) -> Duration {
    guard let plan = outcome.route?.plan else { return .zero }
    let avoided = avoided + outcome.failedAddresses
    return planner.withLock { $0.leastAttempt(after: plan, avoiding: avoided) }
  }

  /// Whether requests to an origin of the list go to its endpoints: there is no proxy for the origin, and the
  /// list has not expired.
  func isDirect(_ origin: Origin) -> Bool {
    guard proxies.proxy(for: origin) == nil else { return false }
    return planner.withLock { $0.list?.isExpired(at: Date()) != true }
  }

  /// Plans with another list from now on, and keeps the measurements of its endpoints.
  func adopt(_ list: EndpointList) {
    let now = timeSource.now()
    planner.withLock { $0.adopt(list, at: now) }
  }

  /// Records the response to a planned request.
  ///
  /// - Parameters:
  ///   - route: the route of the response.
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

  /// Records the failure of a planned request.
  ///
  /// - Returns: the error. Its message says so if the planner suspects this machine's network.
  func record(_ error: NetOptError, along plan: RoutePlan?, started: MonotonicInstant) -> NetOptError {
    let now = timeSource.now()
    let isSuspected = planner.withLock {
      if let plan { $0.ended(plan) }
      if isFromCurrentNetwork(started), let route = error.route {
        $0.record(route, outcome: CallOutcome(error), from: started, at: now)
      }
      return $0.suspectsNetwork(at: now)
    }
    return isSuspected ? error.suspectingTheNetwork : error
  }

  /// Records that a plan carries no further request.
  func ended(_ plan: RoutePlan) { planner.withLock { $0.ended(plan) } }

  /// Records a connection that was opened ahead of requests.
  func record(_ route: RouteReport, started: MonotonicInstant) {
    withPlanner { planner, now in
      if isFromCurrentNetwork(started) { planner.record(route, from: started, at: now) }
    }
  }

  /// Records the result of a probe.
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

  /// Whether work that began at this moment began in the current network. Call it under the planner's lock,
  /// which also protects the change of the network.
  func isFromCurrentNetwork(_ started: MonotonicInstant) -> Bool {
    started.nanoseconds >= networkBegan.load(ordering: .relaxed)
  }

  /// Starts anew in another network.
  ///
  /// - Parameter history: the saved ranking of the new network.
  /// - Returns: the ranking of the old network, and the hosts with a known ranking in the new network.
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

  func withPlanner<Result: Sendable>(_ body: (inout sending RoutePlanner, MonotonicInstant) -> sending Result)
    -> sending Result
  {
    let now = timeSource.now()
    return planner.withLock { body(&$0, now) }
  }
}

extension NetOptError {
  /// The same error with a message that this machine's network seems to be down.
  fileprivate var suspectingTheNetwork: NetOptError {
    guard [.connect, .tls, .resolve].contains(phase) else { return self }
    return NetOptError(
      code, phase: phase,
      "\(message); several addresses and DNS failed together: check this machine's network",
      endpoint: endpoint, underlying: underlying, isRetryable: isRetryable, route: route)
  }
}
