/// A value that one task waits for, and that others set. The first value that is set counts. Safe from any
/// thread.
package final class FirstValue<Value: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Value, Never>)
    case set(Value)
  }

  private let state = Locked(State.open)

  /// Makes a value that is not set.
  package init() {}

  /// Sets the value. Does nothing if it is set already.
  package func set(_ value: Value) {
    let waiting = state.withLock { state -> CheckedContinuation<Value, Never>? in
      if case .set = state { return nil }
      defer { state = .set(value) }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    waiting?.resume(returning: value)
  }

  /// Waits until the value is set. Call this once.
  ///
  /// - Parameter substitute: the value that the cancellation of the task sets.
  package func value(whenCancelled substitute: Value) async -> Value {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let known = state.withLock { state -> Value? in
          if case .set(let value) = state { return value }
          state = .waiting(continuation)
          return nil
        }
        if let known { continuation.resume(returning: known) }
      }
    } onCancel: {
      set(substitute)
    }
  }
}

extension FirstValue<Void> {
  /// Waits until the value is set, or the task is cancelled. Call this once.
  package func wait() async { await value(whenCancelled: ()) }
}
