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
      $0.plan(for: origin, options: request.options, proxy: proxy, now: now, wall: Date())
    }
  }

  /// Whether requests to an origin of the list go to its endpoints: no proxy is in the way, and the list has not expired.
  func isDirect(_ origin: Origin) -> Bool {
    guard proxy(for: origin) == nil else { return false }
    return planner.withLock { $0.list?.isExpired(at: Date()) != true }
  }

  /// Plans with another list from now on; what is known of its endpoints stays known.
  func adopt(_ list: EndpointList) {
    let now = timeSource.now()
    planner.withLock { $0.adopt(list, at: now) }
  }

  func record(_ response: HTTPResponse, to options: RequestOptions) {
    let now = timeSource.now()
    planner.withLock {
      $0.record(response.route, at: now)
      $0.learned(version: response.version, for: response.route.plan.origin, options: options)
    }
  }

  func record(_ route: RouteReport) {
    let now = timeSource.now()
    planner.withLock { $0.record(route, at: now) }
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
