import NetOptCore
import NetOptLocking
import NetOptRouting

/// Observes the requests that wait for responses. It lets the planner learn from them, opens connections to
/// endpoints that are suspected of being silent, and takes requests from endpoints that are silent.
final class WaitWatch: WaitObserver {
  /// The objects that the watch works with. The reference to the prober is weak, because the prober holds the
  /// transport, which holds this watch. The reference to the retries is strong: each request retains the
  /// retries, and retaining an object that has weak references is slow.
  private struct Parts {
    weak var prober: Prober?
    var retries: Retries?
    var probes = true
  }

  private let router: Router
  private let parts = Locked(Parts())

  init(_ router: Router) { self.router = router }

  /// Starts to observe.
  ///
  /// - Parameter probes: whether endpoints may be probed beside the requests.
  func start(_ prober: Prober, _ retries: Retries, probes: Bool) {
    parts.withLock { $0 = Parts(prober: prober, retries: retries, probes: probes) }
  }

  func observe(waiting: [WaitingRequest], at now: MonotonicInstant) -> WaitOutcome {
    let (prober, retries, probes) = parts.withLock { ($0.prober, $0.retries, $0.probes) }
    guard let prober, let retries else { return WaitOutcome() }
    let findings = router.withPlanner { [router] planner, _ in
      // Requests that were sent in another network say nothing about this network.
      let isOld = waiting.contains { !router.isFromCurrentNetwork($0.sent) }
      return planner.observe(waiting: isOld ? [] : waiting, probes: probes, now: now)
    }
    if probes, !findings.probes.isEmpty { prober.startProbes(findings.probes) }
    // The budget pays here for the second send of each taken request, and the call's retry then pays nothing.
    // When the budget has nothing left, the request keeps waiting at its endpoint. A request that the
    // endpoint's kernel has not acknowledged costs nothing, like a request to an endpoint that refuses
    // connections.
    let taken = findings.taken.filter { $0.isUnacknowledged || retries.takeHedge() }
    return WaitOutcome(taken: taken, silent: findings.silent)
  }
}
