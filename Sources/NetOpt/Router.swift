import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptRouting

/// The route planner behind a lock, with the clocks and the proxy that it needs to be told of.
final class Router: Sendable {
  private let planner: Locked<RoutePlanner>
  private let timeSource: any TimeSource
  private let proxy: ClientConfiguration.Proxy
  private let environment: ProxyEnvironment

  init(
    _ list: EndpointList?, _ configuration: ClientConfiguration,
    _ timeSource: any TimeSource = SystemTimeSource()
  ) {
    planner = Locked(
      RoutePlanner(list: list, configuration: configuration.routing, seed: UInt64.random(in: .min ... .max)))
    self.timeSource = timeSource
    proxy = configuration.proxy
    environment = ProxyEnvironment(ProcessInfo.processInfo.environment)
  }

  func plan(for request: HTTPRequest) -> RoutePlan {
    let origin = request.url.origin
    let proxy = proxy(for: origin)
    let now = timeSource.now()
    return planner.withLock {
      let plan = $0.plan(for: origin, options: request.options, proxy: proxy, now: now, wall: Date())
      $0.began(plan)
      return plan
    }
  }

  /// Whether requests to an origin of the list go to its endpoints: no proxy is in the way, and the list has not expired.
  func isDirect(_ origin: Origin) -> Bool {
    guard proxy(for: origin) == nil else { return false }
    return planner.withLock { $0.list?.isExpired(at: Date()) != true }
  }

  /// The answer to a request that was planned began.
  func record(_ response: HTTPResponse, to options: RequestOptions, along plan: RoutePlan) {
    let outcome = CallOutcome(response)
    let now = timeSource.now()
    planner.withLock {
      $0.ended(plan)
      $0.record(response.route, outcome: outcome, at: now)
      $0.learned(version: response.version, for: response.route.plan.origin, options: options)
    }
  }

  /// A request that was planned failed.
  ///
  /// - Returns: the error, which says so when the network is suspected.
  func record(_ error: NetOptError, along plan: RoutePlan, from begun: MonotonicInstant) -> NetOptError {
    let now = timeSource.now()
    let isSuspected = planner.withLock {
      $0.ended(plan)
      if let route = error.route { $0.record(route, outcome: CallOutcome(error), from: begun, at: now) }
      return $0.suspectsNetwork(at: now)
    }
    return isSuspected ? error.suspectingTheNetwork : error
  }

  func withPlanner<Result: Sendable>(_ body: (inout sending RoutePlanner, MonotonicInstant) -> sending Result)
    -> sending Result
  {
    let now = timeSource.now()
    return planner.withLock { body(&$0, now) }
  }

  private func proxy(for origin: Origin) -> String? {
    switch proxy {
    case .environment: environment.proxy(for: origin)
    case .none: nil
    case .url(let url): url
    }
  }
}

extension NetOptError {
  /// The same error, saying that this machine's network seems to be down.
  fileprivate var suspectingTheNetwork: NetOptError {
    guard [.connect, .tls, .resolve].contains(phase) else { return self }
    return NetOptError(
      code, phase: phase,
      "\(message); several addresses and DNS failed together: check this machine's network",
      endpoint: endpoint, underlying: underlying, isRetryable: isRetryable, route: route)
  }
}
