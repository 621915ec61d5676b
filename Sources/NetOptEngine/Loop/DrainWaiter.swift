import NetOptLocking

/// A task that waits until no work is under way. Safe from any thread.
package final class DrainWaiter: Sendable {
  private enum State {
    case new
    case waiting(CheckedContinuation<Void, Never>)
    case ended
  }

  private let state = Locked(State.new)

  package init() {}

  /// Waits until `end` is called, or the task is cancelled. Call this once.
  package func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if case .ended = state { return true }
          state = .waiting(continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      end()
    }
  }

  /// Ends the wait. Does nothing if it has already ended.
  package func end() {
    let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
      defer { state = .ended }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    waiting?.resume()
  }
}
