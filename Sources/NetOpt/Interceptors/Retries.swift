import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptRouting

/// The state that all calls of a client share for retries and hedges: the retry budget, the policy with its
/// random numbers, the latencies of origins, and the calls that wait for a retry. Safe from any thread.
final class Retries: Sendable {
  /// The maximum number of origins with known latencies. When a further origin would be added, the latencies
  /// of all origins are dropped.
  private static let mostOrigins = 1024

  private struct State {
    /// Limits the retries and hedges to a share of the number of calls, plus some free ones per second.
    var budget: RetryBudget
    /// Decides on retries. It is in the lock because it has the state of the random numbers for waits.
    var policy: RetryPolicy
    /// For each origin, the latencies of first attempts: the time from the start of the attempt until its
    /// response began. Only calls with the option `hedges` add to it.
    var latencies: [Origin: LatencyQuantile] = [:]
    /// The sleeping task of each wait that is under way, by the number of the wait. Cancelling a task ends
    /// its wait.
    var sleeps: [UInt64: Task<Void, Never>] = [:]
    /// The number of the wait that began last.
    var lastSleep: UInt64 = 0
    /// Whether `stop` was called, because the client shuts down. Then no call waits any more.
    var isStopped = false
  }

  let timeSource: any TimeSource
  let observers: [any CallObserver]
  private let state: Locked<State>

  init(_ timeSource: any TimeSource, observers: [any CallObserver]) {
    self.timeSource = timeSource
    self.observers = observers
    state = Locked(
      State(
        budget: RetryBudget(at: timeSource.now()),
        policy: RetryPolicy(seed: UInt64.random(in: .min ... .max))))
  }

  /// Tells the budget that a call begins. Every five calls together pay for one retry.
  @inline(never)
  func callBegins(at now: MonotonicInstant) { state.withLock { $0.budget.callBegins(at: now) } }

  /// Asks the policy what follows an attempt.
  ///
  /// - Parameters:
  ///   - outcome: the outcome of the attempt.
  ///   - attempts: the number of attempts that the call has made, this attempt included.
  ///   - waits: how often the call has waited for the budget since this attempt.
  ///   - deadline: the deadline of the call; `nil` for a call without a time limit.
  ///   - shortest: the shortest time that a further attempt could take; zero when it is unknown.
  func decide(
    after outcome: RetryPolicy.Outcome, of request: NetOptRequest, attempts: Int, waits: Int,
    until deadline: MonotonicInstant?, shortest: @autoclosure () -> Duration
  ) -> RetryPolicy.Decision {
    let now = timeSource.now()
    return state.withLock { state in
      state.policy.decide(
        after: outcome, of: request, attempts: attempts, waits: waits, at: now, until: deadline,
        shortest: shortest(), wall: Date(), budget: &state.budget)
    }
  }

  /// Takes the cost of a hedge from the budget. `WaitWatch` also calls this function for a request that it
  /// takes from a silent endpoint.
  ///
  /// - Returns: false when the budget does not allow a hedge.
  func takeHedge() -> Bool {
    let now = timeSource.now()
    return state.withLock { $0.budget.take(at: now) }
  }

  // MARK: Latency

  /// The time after which an attempt without a response counts as slow: the 95th percentile of the origin's
  /// latencies. `nil` while fewer than 40 latencies are known (`LatencyQuantile.leastSamples`).
  func slowAnswer(of origin: Origin) -> Duration? { state.withLock { $0.latencies[origin]?.value } }

  /// Records a latency of an origin: the time from the start of an attempt until its response began. For an
  /// attempt that was cancelled because its hedge won, the time until the cancellation counts.
  func recordResponseTime(_ time: Duration, of origin: Origin) {
    state.withLock { state in
      if state.latencies.count >= Self.mostOrigins, state.latencies[origin] == nil { state.latencies = [:] }
      state.latencies[origin, default: LatencyQuantile()].add(time)
    }
  }

  /// Drops all latencies: they were measured in the network that this machine has left.
  func networkChanged() { state.withLock { $0.latencies = [:] } }

  // MARK: Waiting

  /// Whether `stop` was called, because the client shuts down.
  var isStopped: Bool { state.withLock(\.isStopped) }

  /// Waits for a duration. Returns early when the task is cancelled and when the client shuts down.
  func wait(_ duration: Duration) async {
    guard duration > .zero else { return }
    let sleep = Task { _ = try? await Task.sleep(for: duration) }
    let id = state.withLock { state in
      state.lastSleep += 1
      if state.isStopped { sleep.cancel() } else { state.sleeps[state.lastSleep] = sleep }
      return state.lastSleep
    }
    await withTaskCancellationHandler {
      await sleep.value
    } onCancel: {
      sleep.cancel()
    }
    state.withLock { _ = $0.sleeps.removeValue(forKey: id) }
  }

  /// Ends all waits, and makes later waits return at once.
  func stop() {
    let sleeps = state.withLock { state in
      state.isStopped = true
      defer { state.sleeps = [:] }
      return Array(state.sleeps.values)
    }
    for sleep in sleeps { sleep.cancel() }
  }
}
