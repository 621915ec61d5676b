import NetOpt
import NetOptCore
import NetOptLocking

/// Performs one request of the storm. Checks the complete response, and whether the call ends in time.
struct StormCall: Sendable {
  /// The result of a call.
  enum Outcome: Sendable {
    /// The response was read to its end, in this HTTP version. `isFromCache`: whether the cache delivered it.
    case answered(HTTPVersion, isFromCache: Bool)
    /// The call or its body failed.
    case failed(NetOptError)
    /// The caller dropped the response without reading it.
    case abandoned
  }

  /// The plan of the request.
  let plan: RequestPlan
  /// The client that performs the request.
  let client: NetOptClient
  /// The host and port of the URL, and the `Host` field.
  let authority: String
  /// Gives the plans of other requests, for the check of cached responses.
  let generator: RequestGenerator
  /// The responses that the backend sent for cacheable URLs.
  let record: CacheRecord
  let violations: Violations
  /// Measures how late this machine runs due work.
  let lateness: Lateness

  /// How long after its deadline a call may end, besides the allowance for the machine
  /// (`Lateness.allowance`).
  private static let grace = Duration.milliseconds(50)
  /// The allowance for the machine up to which the end of a call is judged. Beyond, a late end shows nothing
  /// about the client.
  private static let mostLateness = Duration.milliseconds(600)

  /// Performs the request. Adds a violation for each fault of the response, and for a late end.
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
    // A caller that sleeps between chunks notices the end of the call only when it wakes.
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

  /// Sends the request, and reads and checks the response.
  ///
  /// - Parameter cancelledAt: gets the moment at which this function cancels its own task, if the plan says
  ///   so.
  private func exchange(_ cancelledAt: SharedMoment) async -> Outcome {
    var judge = Judge(plan, authority: authority, record, violations)
    do throws(NetOptError) {
      let response = try await client.execute(try plan.request(to: authority))
      judge.head(response, generator)
      if plan.cancellation == .atHead { cancel(cancelledAt) }
      guard plan.reading != .notAtAll else { return .abandoned }
      // The number of pauses that a slow caller still makes.
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

  /// Cancels the present task, and notes when. Only the first call has an effect.
  private func cancel(_ cancelledAt: SharedMoment) {
    guard cancelledAt.value == nil else { return }
    cancelledAt.set(SystemTimeSource().now())
    withUnsafeCurrentTask { $0?.cancel() }
  }
}

/// When a call was cancelled; `nil` before. The task of the call and the task that cancels it share this
/// object.
private final class SharedMoment: Sendable {
  private let moment = Locked<MonotonicInstant?>(nil)

  var value: MonotonicInstant? { moment.withLock { $0 } }

  func set(_ value: MonotonicInstant) { moment.withLock { $0 = value } }
}
