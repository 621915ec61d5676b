public import NetOptCore

/// A clock that moves only when a test advances it.
public final class ManualTimeSource: TimeSource {
  /// The time that the clock shows.
  private let moment: AsyncCondition<MonotonicInstant>

  /// Creates a clock.
  ///
  /// - Parameter start: the time that the clock shows first.
  package init(at start: MonotonicInstant) { moment = AsyncCondition(start) }

  /// Creates a clock that shows 1,000 s. The time is not 0, so that a test can subtract durations from it.
  public convenience init() { self.init(at: MonotonicInstant(nanoseconds: 1_000_000_000_000)) }

  /// The time that the clock shows. Thread-safe.
  package func now() -> MonotonicInstant { moment.state }

  /// Advances the clock, and wakes the tasks that sleep until the new time or an earlier time.
  public func advance(by duration: Duration) {
    precondition(duration >= .zero, "a monotonic clock does not go back")
    moment.update { $0 = $0 + duration }
  }

  /// Suspends the task until the clock shows `due` or a later time.
  ///
  /// - Throws: `CancellationError` when the task is cancelled first.
  package func sleep(until due: MonotonicInstant) async throws {
    guard await moment.wait(until: { $0 >= due }) else { throw CancellationError() }
  }

  /// The number of tasks that sleep until a later time of the clock. Before a test advances the clock, the
  /// test waits until the tasks that it wants to wake are asleep.
  public var sleepers: Int { moment.waiting }
}
