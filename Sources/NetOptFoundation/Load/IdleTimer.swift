import Dispatch

/// Calls a closure when there is no progress for some time. All calls must be on its queue.
final class IdleTimer: @unchecked Sendable {
  // Unchecked: only work on the queue uses the variables.

  private let limit: Double
  private let queue: DispatchQueue
  private let expire: @Sendable () -> Void
  /// When the time is over; `nil` while the timer is paused or stopped.
  private var deadline: DispatchTime?
  /// The reasons for which the time stands still: the task is suspended, and a delegate is asked.
  private var pauses = 0
  private var isStopped = false
  /// Whether a check is pending on the queue.
  private var isArmed = false

  /// Starts the timer.
  ///
  /// - Parameter limit: the time in seconds; no limit if it is 0 or less.
  init(_ limit: Double, on queue: DispatchQueue, _ expire: @escaping @Sendable () -> Void) {
    // Dispatch cannot represent much longer times.
    self.limit = min(limit, 1e9)
    self.queue = queue
    self.expire = expire
    progress()
  }

  /// The time begins again, unless the timer is paused.
  func progress() {
    guard limit > 0, pauses == 0, !isStopped else { return }
    deadline = .now() + limit
    if !isArmed { arm(.now() + limit) }
  }

  /// Lets the time stand still until a `resume` for each `pause`.
  func pause() {
    pauses += 1
    deadline = nil
  }

  /// Ends a pause. After the last one, the time begins again.
  func resume() {
    pauses -= 1
    progress()
  }

  /// Ends the timer.
  func stop() {
    isStopped = true
    deadline = nil
  }

  /// Progress is frequent, so a check does not move with it: it looks at the deadline when it runs.
  private func arm(_ moment: DispatchTime) {
    isArmed = true
    queue.asyncAfter(deadline: moment) { [weak self] in
      guard let self else { return }
      isArmed = false
      guard let deadline else { return }
      if deadline > .now() { arm(deadline) } else { expire() }
    }
  }
}
