import NetOptCore
import NetOptLocking
import NetOptRouting

/// Looks after the requests that wait for their answers: has the planner learn from them, endpoints tried that are suspected of not
/// answering, and requests taken from those that do not.
final class WaitWatch: WaitObserver {
  /// What it works with. The prober holds the transport, which holds this. Only where it must be is a reference weak: each request retains the
  /// retries, and that is slow for what has weak references.
  private struct Parts {
    weak var prober: Prober?
    var retries: Retries?
    var probes = true
  }

  private let router: Router
  private let parts = Locked(Parts())

  init(_ router: Router) { self.router = router }

  /// Begins to look.
  ///
  /// - Parameter probes: whether endpoints may be probed beside the requests.
  func start(_ prober: Prober, _ retries: Retries, probes: Bool) {
    parts.withLock { $0 = Parts(prober: prober, retries: retries, probes: probes) }
  }

  func look(at waiting: [WaitingRequest], at now: MonotonicInstant) -> WaitOutcome {
    let (prober, retries, probes) = parts.withLock { ($0.prober, $0.retries, $0.probes) }
    guard let prober, let retries else { return WaitOutcome() }
    let findings = router.withPlanner { [router] planner, _ in
      // In another network they say nothing.
      let isOld = waiting.contains { !router.isOfThisNetwork($0.sent) }
      return planner.look(at: isOld ? [] : waiting, probes: probes, now: now)
    }
    if probes, !findings.probes.isEmpty { prober.tryConnections(findings.probes) }
    // Paid for beforehand: a call that is ended here must be able to go on elsewhere. What was lost is free, as a request to an endpoint
    // that refuses connections is.
    let taken = findings.taken.filter { $0.isLost || retries.takeHedge() }
    return WaitOutcome(taken: taken, silent: findings.silent)
  }
}
