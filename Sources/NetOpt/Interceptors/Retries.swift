import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptRouting

/// What the calls of a client share in order to be made more than once: the budget, the policy's dice, what is known of the
/// origins' latency, and those who wait to be sent again.
final class Retries: Sendable {
  /// The most origins whose latency is known. Beyond it they are all forgotten.
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

  /// A call begins, which pays for a part of a retry.
  @inline(never)
  func callBegins(at now: MonotonicInstant) { state.withLock { $0.budget.callBegins(at: now) } }

  /// Decides after an attempt.
  ///
  /// - Parameters:
  ///   - waits: how often the call has waited for the budget since.
  ///   - shortest: the least time that another one takes.
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

  /// Takes what a hedge costs.
  func takeHedge() -> Bool {
    let now = timeSource.now()
    return state.withLock { $0.budget.take(at: now) }
  }

  // MARK: Latency

  /// After what time an answer of an origin is slow.
  func slowAnswer(of origin: Origin) -> Duration? { state.withLock { $0.latencies[origin]?.value } }

  /// An answer of an origin began after this time, or had not begun.
  func answerTook(_ time: Duration, of origin: Origin) {
    state.withLock { state in
      if state.latencies.count >= Self.mostOrigins, state.latencies[origin] == nil { state.latencies = [:] }
      state.latencies[origin, default: LatencyQuantile()].add(time)
    }
  }

  /// What was slow in another network says nothing about this one.
  func networkChanged() { state.withLock { $0.latencies = [:] } }

  // MARK: Waiting

  /// Whether the client is being shut down.
  var isStopped: Bool { state.withLock(\.isStopped) }

  /// Lets time pass. Returns early when the task is cancelled, and when the client is shut down.
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

  /// Lets go of everyone who waits, now and later.
  func stop() {
    let sleeps = state.withLock { state in
      state.isStopped = true
      defer { state.sleeps = [:] }
      return Array(state.sleeps.values)
    }
    for sleep in sleeps { sleep.cancel() }
  }
}
