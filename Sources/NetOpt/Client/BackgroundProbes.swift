import NetOptCore
import NetOptLocking
import NetOptRouting
import Synchronization

/// Sends background probes and saves the ranking while the client is in use. When the client sends no
/// requests, this object does nothing and runs no timer. Safe from any thread.
final class BackgroundProbes: Sendable {
  private struct State {
    /// The task that probes; it ends when no origin is in use.
    var task: Task<Void, Never>?
    /// The wait for the next probe. Cancelling it ends the wait.
    var sleep: Task<Void, Never>?
    /// Whether `recheckDueTimes` was called since the task last asked the planner when the next probe is due.
    /// The wait for this probe then ends early.
    var mayBeDueEarlier = false
    /// Whether the client shuts down.
    var isStopped = false
  }

  /// The longest wait for the next probe. An origin that comes into use during the wait may have a probe that
  /// is due before all known probes.
  private static let longestSleep = Duration.seconds(10)

  private let router: Router
  private let prober: Prober
  /// Saves the ranking from time to time.
  private let ranking: RankingMemory
  private let timeSource: any TimeSource
  /// Whether the configuration allows background probes (`Probing.inBackground`).
  private let isEnabled: Bool
  /// Set when `run` is started, and cleared when it ends. A request after `stop` sets it too, although
  /// nothing starts then. It is outside of `state`, because every request reads it.
  private let isRunning = Atomic(false)
  private let state = Locked(State())

  init(
    _ router: Router, _ prober: Prober, _ ranking: RankingMemory,
    _ configuration: ClientConfiguration.Probing, _ timeSource: any TimeSource
  ) {
    self.router = router
    self.prober = prober
    self.ranking = ranking
    self.timeSource = timeSource
    isEnabled = configuration.inBackground
    // The result of a probe can make another probe due earlier. For example, an endpoint with a wrong
    // certificate is due again after a second.
    prober.whenProbed { [weak self] in self?.recheckDueTimes() }
  }

  /// Whether background probes run, or the next one is awaited.
  var isActive: Bool { isRunning.load(ordering: .relaxed) }

  /// Starts the background probes, unless they are running. Called when a request was planned with the list,
  /// because the client is then in use.
  func requestWasPlanned() {
    guard isEnabled, !isRunning.load(ordering: .relaxed), !isRunning.exchange(true, ordering: .relaxed) else {
      return
    }
    state.withLock { state in
      if !state.isStopped { state.task = Task { await self.run() } }
    }
  }

  /// Ends the wait for the next probe and asks the planner again when it is due. Called after an event that
  /// may make a probe due earlier: for example, an endpoint has failed, and its circuit breaker has set the
  /// time of its next probe.
  func recheckDueTimes() {
    let sleep = state.withLock { state in
      state.mayBeDueEarlier = true
      return state.sleep
    }
    sleep?.cancel()
  }

  /// Stops the background probes for good.
  func stop() {
    let (task, sleep) = state.withLock { state in
      state.isStopped = true
      return (state.task, state.sleep)
    }
    task?.cancel()
    sleep?.cancel()
  }

  /// Probes until no origin is in use or the client shuts down.
  private func run() async {
    // When there is no next probe, no origin is in use. The condition is checked again after the last probes
    // have ended, because an origin may be in use again by then.
    while !Task.isCancelled, nextProbe != nil { await probeWhatIsDue() }
    isRunning.store(false, ordering: .relaxed)
  }

  /// When the next probe is due, by the monotonic clock; `nil` when no origin is in use.
  private var nextProbe: MonotonicInstant? {
    router.withPlanner { planner, now in planner.nextProbe(after: now) }
  }

  /// Probes endpoints when they are due, until no origin is in use. Returns when all its probes have ended.
  private func probeWhatIsDue() async {
    await withDiscardingTaskGroup { group in
      while !Task.isCancelled {
        state.withLock { $0.mayBeDueEarlier = false }
        guard let due = nextProbe else { break }
        await sleep(until: due)
        if Task.isCancelled { break }
        let probes = router.withPlanner { planner, now in planner.dueProbes(at: now) }
        // The probes run concurrently: a silent endpoint takes a second, and the probe of another endpoint
        // must not wait for it. There are never many at once, because the planner hands out few.
        if !probes.isEmpty {
          group.addTask {
            await self.prober.probe(probes)
            self.recheckDueTimes()
          }
        }
        ranking.saveIfOld()
      }
    }
  }

  /// Waits until a probe is due, at most `longestSleep`. Returns early after `recheckDueTimes` and `stop`.
  private func sleep(until due: MonotonicInstant) async {
    // At least 1 ms: a probe that is due but cannot run must not keep a processor busy.
    let rest = min(max(due - timeSource.now(), .milliseconds(1)), Self.longestSleep)
    let sleep = Task { _ = try? await Task.sleep(for: rest) }
    let isOver = state.withLock { state in
      state.sleep = sleep
      return state.isStopped || state.mayBeDueEarlier
    }
    if isOver { sleep.cancel() }
    await sleep.value
  }
}
