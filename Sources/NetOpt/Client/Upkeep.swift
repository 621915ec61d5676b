import NetOptCore
import NetOptLocking
import NetOptRouting
import Synchronization

/// What is done beside the requests while a client is in use: probes that are due, and keeping the ranking. A client that
/// sends no requests costs nothing: nothing is done, and no timer runs.
final class Upkeep: Sendable {
  private struct State {
    var task: Task<Void, Never>?
    /// Ends the wait for the next probe.
    var sleep: Task<Void, Never>?
    /// Whether something has happened that may make a probe due earlier.
    var hasNews = false
    var isStopped = false
  }

  /// The longest sleep: an origin that comes into use meanwhile may have a probe due before those that were known.
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
    // Such as an endpoint whose certificate is to be checked again in a second.
    prober.whenProbed { [weak self] in self?.lookAgain() }
  }

  /// Whether it is at work, or waits for a probe to be due.
  var hasBegun: Bool { isRunning.load(ordering: .relaxed) }

  /// A request was planned along the list: the client is in use.
  func requestWasPlanned() {
    guard isEnabled, !isRunning.load(ordering: .relaxed), !isRunning.exchange(true, ordering: .relaxed) else {
      return
    }
    state.withLock { state in
      if !state.isStopped { state.task = Task { await self.run() } }
    }
  }

  /// Something was learnt that may make a probe due earlier: of an endpoint that has failed, when its circuit is.
  func lookAgain() {
    let sleep = state.withLock { state in
      state.hasNews = true
      return state.sleep
    }
    sleep?.cancel()
  }

  /// Ends it.
  func stop() {
    let (task, sleep) = state.withLock { state in
      state.isStopped = true
      return (state.task, state.sleep)
    }
    task?.cancel()
    sleep?.cancel()
  }

  private func run() async {
    // Without a next probe no origin is in use. One may be again when the last probes have ended.
    while !Task.isCancelled, nextProbe != nil { await probeWhatIsDue() }
    isRunning.store(false, ordering: .relaxed)
  }

  private var nextProbe: MonotonicInstant? {
    router.withPlanner { planner, now in planner.nextProbe(after: now) }
  }

  private func probeWhatIsDue() async {
    await withDiscardingTaskGroup { group in
      while !Task.isCancelled {
        state.withLock { $0.hasNews = false }
        guard let due = nextProbe else { break }
        await sleep(until: due)
        if Task.isCancelled { break }
        let probes = router.withPlanner { planner, now in planner.dueProbes(at: now) }
        // Beside each other: an endpoint that stays silent takes a second, and whether another one works again is not to wait
        // for it. The planner gives them out so seldom that there are never many.
        if !probes.isEmpty {
          group.addTask {
            await self.prober.probe(probes)
            self.lookAgain()
          }
        }
        ranking.saveIfOld()
      }
    }
  }

  private func sleep(until due: MonotonicInstant) async {
    // Never less than a moment: what is due and cannot be done must not keep a processor busy.
    let rest = min(max(due - timeSource.now(), .milliseconds(1)), Self.longestSleep)
    let sleep = Task { _ = try? await Task.sleep(for: rest) }
    let isOver = state.withLock { state in
      state.sleep = sleep
      return state.isStopped || state.hasNews
    }
    if isOver { sleep.cancel() }
    await sleep.value
  }
}
