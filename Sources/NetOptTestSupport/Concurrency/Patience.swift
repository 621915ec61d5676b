import Dispatch
import NetOptLocking

/// Waits for work that may never end, with a time limit. A task group cannot do this, because it waits until
/// all its tasks have ended. Further functions let blocking code wait for asynchronous work, and tasks wait
/// for blocking work.
package enum Patience {
  /// Resumes a continuation with the first value, and ignores all later values.
  private final class Once<Value: Sendable>: Sendable {
    /// The continuation; `nil` after it was resumed.
    private let continuation: Locked<CheckedContinuation<Value?, Never>?>

    init(_ continuation: CheckedContinuation<Value?, Never>) { self.continuation = Locked(continuation) }

    func resume(_ value: sending Value?) { continuation.withLock { $0.take() }?.resume(returning: value) }
  }

  /// Returns the result of the work, or `nil` when the work takes longer than `limit`. The work is not
  /// cancelled and continues.
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

  /// Blocks the calling thread until asynchronous work has ended, and returns the result. Do not call this on
  /// a thread of the task pool: the work may need that thread.
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

  /// Suspends the task until blocking work has ended, and returns the result. The work runs on a thread
  /// outside the task pool.
  package static func outcome<Value: Sendable>(ofBlocking work: @escaping @Sendable () -> Value) async
    -> Value
  {
    await withCheckedContinuation { continuation in
      DispatchQueue(label: "netopt blocking work").async { continuation.resume(returning: work()) }
    }
  }
}
