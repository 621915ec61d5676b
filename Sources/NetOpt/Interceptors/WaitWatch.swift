import NetOptCore
import NetOptLocking
import NetOptRouting

/// Shows the planner the requests that wait for responses, and acts on what the planner finds. It opens
/// trial connections to endpoints that the planner suspects of being silent. It tells the transport which
/// requests to take from silent endpoints, so that their calls send them elsewhere.
final class WaitWatch: WaitObserver {
  /// The objects that this watch needs and that the client makes after it; both `nil` before `start`. The
  /// reference to the prober is weak, because the prober holds the transport, which holds this watch. The
  /// reference to the retries is strong: each request retains the retries, and retaining an object that has
  /// weak references is slow.
  private struct Parts {
    weak var prober: Prober?
    var retries: Retries?
    /// Whether the configuration allows background probes.
    var probes = true
  }

  private let router: Router
  private let parts = Locked(Parts())

  init(_ router: Router) { self.router = router }

  /// Starts to observe. Before this call, `observe` does nothing.
  ///
  /// - Parameter probes: whether the client may probe endpoints in the background.
  func start(_ prober: Prober, _ retries: Retries, probes: Bool) {
    parts.withLock { $0 = Parts(prober: prober, retries: retries, probes: probes) }
  }

  /// Passes the waiting requests to the planner. Starts the trial connections that the planner asks for.
  ///
  /// - Returns: the requests to take from their endpoints, and the endpoints that have gone silent.
  func observe(waiting: [WaitingRequest], at now: MonotonicInstant) -> WaitOutcome {
    let (prober, retries, probes) = parts.withLock { ($0.prober, $0.retries, $0.probes) }
    guard let prober, let retries else { return WaitOutcome() }
    let findings = router.withPlanner { [router] planner, _ in
      // Requests that were sent in another network say nothing about this network. If there is one among the
      // waiting requests, none counts this time.
      let isOld = waiting.contains { !router.isFromCurrentNetwork($0.sent) }
      return planner.observe(waiting: isOld ? [] : waiting, probes: probes, now: now)
    }
    if probes, !findings.probes.isEmpty { prober.startProbes(findings.probes) }
    // Each taken request will be sent a second time. The retry budget pays for that here, and the retry
    // itself then costs nothing. When the budget is used up, the request keeps waiting at its endpoint. A
    // request that the endpoint's kernel has not acknowledged costs nothing, like a request to an endpoint
    // that refuses connections.
    let taken = findings.taken.filter { $0.isUnacknowledged || retries.takeHedge() }
    return WaitOutcome(taken: taken, silent: findings.silent)
  }
}
