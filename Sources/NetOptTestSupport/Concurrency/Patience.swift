import Dispatch
import NetOptLocking

/// Waits for work that may never end. A task group cannot do this, because it waits for all its tasks.
package enum Patience {
  private final class Once<Value: Sendable>: Sendable {
    private let continuation: Locked<CheckedContinuation<Value?, Never>?>

    init(_ continuation: CheckedContinuation<Value?, Never>) { self.continuation = Locked(continuation) }

    func resume(_ value: sending Value?) { continuation.withLock { $0.take() }?.resume(returning: value) }
  }

  /// Returns the result of the work, or `nil` when the work takes longer than `limit`. The function does not
  /// cancel the work.
  package static func outcome<Value: Sendable>(
    within limit: Duration, of work: @escaping @Sendable () async -> Value
  ) async -> Value? {
    await withCheckedContinuation { continuation in
      let once = Once(continuation)
      let timer = Task {
        if (try? await Task.sleep(for: limit)) != nil { once.resume(nil) }
      }
      Task {
        once.resume(await work())
        timer.cancel()
      }
    }
  }

  /// Returns the result of the work to a caller that is not a task. Blocks the calling thread, so this must
  /// not be a thread of the task pool.
  package static func blockingOutcome<Value: Sendable>(of work: @escaping @Sendable () async -> Value)
    -> Value
  {
    let outcome = Locked<Value?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    Task.detached {
      let value = await work()
      outcome.withLock { $0 = value }
      isDone.signal()
    }
    while true {
      isDone.wait()
      if let value = outcome.withLock({ $0 }) { return value }
    }
  }

  /// Returns the result of blocking work, which runs on a thread outside the task pool.
  package static func outcome<Value: Sendable>(ofBlocking work: @escaping @Sendable () -> Value) async
    -> Value
  {
    await withCheckedContinuation { continuation in
      DispatchQueue(label: "netopt blocking work").async { continuation.resume(returning: work()) }
    }
  }
}
