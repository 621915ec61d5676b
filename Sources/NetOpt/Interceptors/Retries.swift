import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptRouting

/// The state that all calls of a client share for retries and hedges: the retry budget, the policy with its
/// random numbers, the latencies of origins, and the calls that wait for a retry. Safe from any thread.
final class Retries: Sendable {
  /// The maximum number of origins with a known latency. Beyond it all latencies are dropped.
  private static let mostOrigins = 1024

  private struct State {
    var budget: RetryBudget
    var policy: RetryPolicy
    var latencies: [Origin: LatencyQuantile] = [:]
    var sleeps: [UInt64: Task<Void, Never>] = [:]
    var lastSleep: UInt64 = 0
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

  /// Records the start of a call, which adds a part of a retry to the budget.
  @inline(never)
  func callBegins(at now: MonotonicInstant) { state.withLock { $0.budget.callBegins(at: now) } }

  /// Decides what follows an attempt.
  ///
  /// - Parameters:
  ///   - waits: how often the call has waited for the budget since that attempt.
  ///   - shortest: the shortest time that another attempt takes.
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

  /// Takes the cost of a hedge from the budget.
  ///
  /// - Returns: false when the budget does not allow a hedge.
  func takeHedge() -> Bool {
    let now = timeSource.now()
    return state.withLock { $0.budget.take(at: now) }
  }

  // MARK: Latency

  /// The time after which a response of an origin counts as slow: the 95th percentile of its times to the
  /// first byte. `nil` while fewer than 40 times are known (`LatencyQuantile.leastSamples`).
  func slowAnswer(of origin: Origin) -> Duration? { state.withLock { $0.latencies[origin]?.value } }

  /// Records the time until the response of an origin began. For a cancelled attempt this is the time that it
  /// has waited.
  func recordResponseTime(_ time: Duration, of origin: Origin) {
    state.withLock { state in
      if state.latencies.count >= Self.mostOrigins, state.latencies[origin] == nil { state.latencies = [:] }
      state.latencies[origin, default: LatencyQuantile()].add(time)
    }
  }

  /// Drops the latencies: those of another network say nothing about this network.
  func networkChanged() { state.withLock { $0.latencies = [:] } }

  // MARK: Waiting

  /// Whether the client is shutting down.
  var isStopped: Bool { state.withLock(\.isStopped) }

  /// Waits for a time. Returns early when the task is cancelled, and when the client shuts down.
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

  /// Ends all waits, now and later.
  func stop() {
    let sleeps = state.withLock { state in
      state.isStopped = true
      defer { state.sleeps = [:] }
      return Array(state.sleeps.values)
    }
    for sleep in sleeps { sleep.cancel() }
  }
}
