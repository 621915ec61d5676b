import NetOptCore
import NetOptLocking
import NetOptRouting
import Synchronization

/// Sends background probes and saves the ranking while a client is in use. When a client sends no requests,
/// this object does nothing and runs no timer.
final class BackgroundProbes: Sendable {
  private struct State {
    var task: Task<Void, Never>?
    /// Cancelling this task ends the wait for the next probe.
    var sleep: Task<Void, Never>?
    /// Whether an event may have made a probe due earlier.
    var mayBeDueEarlier = false
    var isStopped = false
  }

  /// The longest sleep. An origin that comes into use during the sleep may have a probe that is due before
  /// all known probes.
  private static let longestSleep = Duration.seconds(10)

  private let router: Router
  private let prober: Prober
  private let ranking: RankingMemory
  private let timeSource: any TimeSource
  private let isEnabled: Bool
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
    // A result can make a probe due earlier: an endpoint with a wrong certificate is due again after a
    // second.
    prober.whenProbed { [weak self] in self?.recheckDueTimes() }
  }

  /// Whether the background probes run, or wait until the next one is due.
  var isActive: Bool { isRunning.load(ordering: .relaxed) }

  /// A request was planned along the list, so the client is in use.
  func requestWasPlanned() {
    guard isEnabled, !isRunning.load(ordering: .relaxed), !isRunning.exchange(true, ordering: .relaxed) else {
      return
    }
    state.withLock { state in
      if !state.isStopped { state.task = Task { await self.run() } }
    }
  }

  /// Reads the due times again after an event that may make a probe due earlier. For example, an endpoint has
  /// failed, and its circuit breaker has set the time of its next probe.
  func recheckDueTimes() {
    let sleep = state.withLock { state in
      state.mayBeDueEarlier = true
      return state.sleep
    }
    sleep?.cancel()
  }

  /// Stops the background probes.
  func stop() {
    let (task, sleep) = state.withLock { state in
      state.isStopped = true
      return (state.task, state.sleep)
    }
    task?.cancel()
    sleep?.cancel()
  }

  private func run() async {
    // Without a next probe no origin is in use. An origin may be in use again when the last probes have
    // ended.
    while !Task.isCancelled, nextProbe != nil { await probeWhatIsDue() }
    isRunning.store(false, ordering: .relaxed)
  }

  private var nextProbe: MonotonicInstant? {
    router.withPlanner { planner, now in planner.nextProbe(after: now) }
  }

  private func probeWhatIsDue() async {
    await withDiscardingTaskGroup { group in
      while !Task.isCancelled {
        state.withLock { $0.mayBeDueEarlier = false }
        guard let due = nextProbe else { break }
        await sleep(until: due)
        if Task.isCancelled { break }
        let probes = router.withPlanner { planner, now in planner.dueProbes(at: now) }
        // The probes run concurrently: a silent endpoint takes a second, and the probe of another endpoint
        // must not wait for it. The planner hands out so few probes that there are never many at once.
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
