import Dispatch
import NetOptCore

/// The queue for the timers of `TimeSource.sleep`. Timers fire here even when all threads of the task pool
/// are busy.
private let timerQueue = DispatchQueue(label: "netopt test timers")

extension TimeSource {
  /// Suspends the task until a time of this clock. With a `ManualTimeSource`, the task waits until a test
  /// advances the clock; with any other clock, it waits in real time.
  ///
  /// - Throws: `CancellationError` when the task is cancelled first.
  func sleep(until due: MonotonicInstant) async throws {
    if let manual = self as? ManualTimeSource { return try await manual.sleep(until: due) }
    let rest = due - now()
    guard rest > .zero else { return try Task.checkCancellation() }
    let fired = Latch()
    let timer = DispatchSource.makeTimerSource(queue: timerQueue)
    timer.setEventHandler { fired.open() }
    timer.schedule(deadline: .now() + .nanoseconds(Int(rest.nanoseconds)))
    timer.activate()
    defer { timer.cancel() }
    try await fired.wait()
  }
}
