import Dispatch
import NetOptCore

/// Where the timers of `TimeSource.sleep` fire: apart from the pool on which tasks run, which may be busy.
private let timerQueue = DispatchQueue(label: "netopt test timers")

extension TimeSource {
  /// Suspends the task until a moment of this clock; on any clock but a manual one, that is real time.
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
