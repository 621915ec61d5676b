import NetOptLocking

/// A task that waits until no work is under way. Safe from any thread.
final class DrainWaiter: Sendable {
  private enum State {
    case new
    case waiting(CheckedContinuation<Void, Never>)
    case ended
  }

  private let state = Locked(State.new)

  /// Sets the continuation of the task. Resumes it at once if the wait has already ended.
  func set(_ continuation: CheckedContinuation<Void, Never>) {
    let isOver = state.withLock { state in
      if case .ended = state { return true }
      state = .waiting(continuation)
      return false
    }
    if isOver { continuation.resume() }
  }

  /// Ends the wait. Does nothing if it has already ended.
  func end() {
    let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
      defer { state = .ended }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    waiting?.resume()
  }
}
