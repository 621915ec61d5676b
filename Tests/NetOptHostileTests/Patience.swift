import NetOptLocking

/// Waits for work that may never end, which a task group would wait for.
enum Patience {
  private final class Once<Value: Sendable>: Sendable {
    private let continuation: Locked<CheckedContinuation<Value?, Never>?>

    init(_ continuation: CheckedContinuation<Value?, Never>) { self.continuation = Locked(continuation) }

    func resume(_ value: sending Value?) { continuation.withLock { $0.take() }?.resume(returning: value) }
  }

  /// The outcome of the work, or `nil` when it takes longer than `limit`. Then it is left alone.
  static func outcome<Value: Sendable>(
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
}
