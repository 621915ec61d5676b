import Dispatch
import NetOptLocking

/// Waits for work that may never end, which a task group would wait for.
package enum Patience {
  private final class Once<Value: Sendable>: Sendable {
    private let continuation: Locked<CheckedContinuation<Value?, Never>?>

    init(_ continuation: CheckedContinuation<Value?, Never>) { self.continuation = Locked(continuation) }

    func resume(_ value: sending Value?) { continuation.withLock { $0.take() }?.resume(returning: value) }
  }

  /// The outcome of the work, or `nil` when it takes longer than `limit`. Then it is left alone.
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

  /// The outcome of the work for a caller that is no task. The calling thread waits, so it must be none of the tasks' own.
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

  /// The outcome of work that blocks, done by a thread that is none of the tasks' own.
  package static func outcome<Value: Sendable>(ofBlocking work: @escaping @Sendable () -> Value) async
    -> Value
  {
    await withCheckedContinuation { continuation in
      DispatchQueue(label: "netopt blocking work").async { continuation.resume(returning: work()) }
    }
  }
}
