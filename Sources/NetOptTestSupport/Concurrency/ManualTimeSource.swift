public import NetOptCore

/// A clock that moves when a test says so.
public final class ManualTimeSource: TimeSource {
  private let moment: AsyncCondition<MonotonicInstant>

  /// Makes a clock that stands at a moment.
  ///
  /// - Parameter start: the moment.
  package init(at start: MonotonicInstant) { moment = AsyncCondition(start) }

  /// Makes a clock that stands at 1,000 s, so that a policy may look back.
  public convenience init() { self.init(at: MonotonicInstant(nanoseconds: 1_000_000_000_000)) }

  /// The moment at which it stands. Safe from any thread.
  package func now() -> MonotonicInstant { moment.state }

  /// Moves it on, and wakes who sleeps until the new moment or an earlier one.
  public func advance(by duration: Duration) {
    precondition(duration >= .zero, "a monotonic clock does not go back")
    moment.update { $0 = $0 + duration }
  }

  /// Suspends the task until the clock has been moved to a moment.
  ///
  /// - Throws: `CancellationError` when the task is cancelled first.
  package func sleep(until due: MonotonicInstant) async throws {
    guard await moment.wait(until: { $0 >= due }) else { throw CancellationError() }
  }

  /// How many tasks sleep on it. A test waits for them before it moves the clock.
  public var sleepers: Int { moment.waiting }
}
