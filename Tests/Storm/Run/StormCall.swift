import NetOpt
import NetOptCore
import NetOptLocking

/// Performs one request of the storm, and checks all of its response.
struct StormCall: Sendable {
  /// The result of a call.
  enum Outcome: Sendable {
    case answered(HTTPVersion, isFromCache: Bool)
    case failed(NetOptError)
    /// The caller dropped the response.
    case abandoned
  }

  let plan: RequestPlan
  let client: NetOptClient
  let authority: String
  let generator: RequestGenerator
  let record: CacheRecord
  let violations: Violations
  let lateness: Lateness

  /// How much longer than its deadline a call may take.
  private static let grace = Duration.milliseconds(50)
  /// When the machine itself is later than this, a late call shows nothing.
  private static let mostLateness = Duration.milliseconds(600)

  func perform() async -> Outcome {
    let clock = SystemTimeSource()
    let start = clock.now()
    let cancelledAt = SharedMoment()
    let task = Task { await exchange(cancelledAt) }
    var canceller: Task<Void, Never>?
    if case .after(let milliseconds) = plan.cancellation {
      canceller = Task {
        guard (try? await Task.sleep(for: .milliseconds(milliseconds))) != nil else { return }
        cancelledAt.set(clock.now())
        task.cancel()
      }
    }
    let outcome = await task.value
    let end = clock.now()
    canceller?.cancel()
    // A consumer that sleeps notices the end only when it wakes.
    let pauses =
      if case .slowly(let pause) = plan.reading { Duration.milliseconds(pause * 10) } else { Duration.zero }
    let machine = lateness.allowance(since: start)
    guard machine <= Self.mostLateness else {
      lateness.noteUnjudged()
      return outcome
    }
    let allowance = Self.grace + pauses + machine
    if end - start > .milliseconds(plan.timeout) + allowance {
      violations.add(
        .late, "ended \(end - start) after its start, as \(outcome); allowance \(allowance); \(plan)")
    }
    if let cancelled = cancelledAt.value, end > cancelled, end - cancelled > allowance {
      violations.add(
        .lateCancel,
        "ended \(end - cancelled) after it was cancelled, as \(outcome); allowance \(allowance); \(plan)")
    }
    return outcome
  }

  private func exchange(_ cancelledAt: SharedMoment) async -> Outcome {
    var judge = Judge(plan, authority: authority, record, violations)
    do throws(NetOptError) {
      let response = try await client.execute(try plan.request(to: authority))
      judge.head(response, generator)
      if plan.cancellation == .atHead { cancel(cancelledAt) }
      guard plan.reading != .notAtAll else { return .abandoned }
      var rests = 10
      for try await chunk in response.body {
        judge.chunk(chunk)
        if case .atByte(let count) = plan.cancellation, judge.position >= count { cancel(cancelledAt) }
        if case .slowly(let pause) = plan.reading, rests > 0 {
          rests -= 1
          try? await Task.sleep(for: .milliseconds(pause))
        }
      }
      judge.end()
      return .answered(response.version, isFromCache: response.cacheStatus.isFromCache)
    } catch {
      return .failed(error)
    }
  }

  private func cancel(_ cancelledAt: SharedMoment) {
    guard cancelledAt.value == nil else { return }
    cancelledAt.set(SystemTimeSource().now())
    withUnsafeCurrentTask { $0?.cancel() }
  }
}

/// A moment that two tasks share.
private final class SharedMoment: Sendable {
  private let moment = Locked<MonotonicInstant?>(nil)

  var value: MonotonicInstant? { moment.withLock { $0 } }

  func set(_ value: MonotonicInstant) { moment.withLock { $0 = value } }
}
