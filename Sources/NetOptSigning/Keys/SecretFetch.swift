import NetOptLocking

/// Runs blocking work on a thread of its own, and lets tasks wait until the work ends. For a key, the work is
/// to run its command.
final class SecretFetch: Sendable {
  /// The work under way and the calls that wait for it.
  private struct State {
    /// Whether the work has begun and has not ended.
    var isRunning = false
    /// The number of the last call of `wait`. Calls are numbered from 1.
    var last: UInt64 = 0
    /// The calls that wait for the work, by their numbers.
    var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Locked(State())

  /// Waits until the work is done, the time limit passes or the task is cancelled. The first caller starts
  /// the work, and the others wait for the same work (single flight).
  ///
  /// - Parameters:
  ///   - limit: the longest time to wait; `nil` for no limit.
  ///   - isNeeded: whether the work is still to be done. If not, the call returns at once.
  ///   - work: the blocking work.
  func wait(
    within limit: Duration?, while isNeeded: @Sendable () -> Bool, _ work: @escaping @Sendable () -> Void
  ) async {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    var timer: Task<Void, Never>?
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (mustWait, isFirst) = state.withLock { state in
          guard !Task.isCancelled, isNeeded() else { return (false, false) }
          defer { state.isRunning = true }
          state.waiting[id] = continuation
          return (true, !state.isRunning)
        }
        guard mustWait else { return continuation.resume() }
        if isFirst { begin(work) }
        guard let limit else { return }
        timer = Task {
          try? await Task.sleep(for: limit)
          self.end(id)
        }
      }
    } onCancel: {
      end(id)
    }
    timer?.cancel()
  }

  /// Starts a thread that runs the work and then ends all calls of `wait`.
  private func begin(_ work: @escaping @Sendable () -> Void) {
    let run: @Sendable () -> Void = { [self] in
      work()
      endAll()
    }
    // If the system cannot create a thread, the work blocks the caller.
    if !OwnThread.start(run) { run() }
  }

  /// Ends one call of `wait`. The work continues.
  private func end(_ id: UInt64) { state.withLock { $0.waiting.removeValue(forKey: id) }?.resume() }

  /// Ends all calls of `wait`, because the work has ended.
  private func endAll() {
    let waiting = state.withLock { state in
      defer { (state.isRunning, state.waiting) = (false, [:]) }
      return state.waiting.values
    }
    for continuation in waiting { continuation.resume() }
  }
}
