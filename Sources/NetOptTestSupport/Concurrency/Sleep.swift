import Dispatch
import NetOptCore

/// The queue for the timers of `TimeSource.sleep`. It is separate from the task pool, which may be busy.
private let timerQueue = DispatchQueue(label: "netopt test timers")

extension TimeSource {
  /// Suspends the task until a time of this clock. On any clock except `ManualTimeSource`, the task waits in
  /// real time.
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
