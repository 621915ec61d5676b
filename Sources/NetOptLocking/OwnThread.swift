import Glibc

/// Runs a closure on a new thread. For work that blocks or takes long, such as some functions of OpenSSL: on
/// the threads of Swift's pool, it would hold up all tasks.
package final class OwnThread: Sendable {
  private let body: @Sendable () -> Void

  private init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  /// Starts a closure on a new thread.
  ///
  /// - Returns: false when the system has no thread for it.
  package static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
    let work = Unmanaged.passRetained(OwnThread(body))
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { pointer in
        guard let pointer else { return nil }
        Unmanaged<OwnThread>.fromOpaque(pointer).takeRetainedValue().body()
        return nil
      }, work.toOpaque())
    if code == 0 { pthread_detach(thread) } else { work.release() }
    return code == 0
  }

  /// Runs a closure on a new thread, and suspends the task until it returns. If no thread can start, runs the
  /// closure on the caller's thread.
  package static func run<Value: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    let result = await withCheckedContinuation { continuation in
      let work: @Sendable () -> Void = { continuation.resume(returning: Result(catching: body)) }
      if !start(work) { work() }
    }
    return try result.get()
  }

  /// Runs a closure on a new thread, and waits for its result for a limited time. After that, the thread goes
  /// on until the closure returns.
  ///
  /// - Parameter limit: the longest time to wait, in milliseconds.
  /// - Returns: the result; `nil` if it is not ready in time, or if the system provides no pipe or no thread.
  package static func perform<Value: Sendable>(
    within limit: Int32, _ body: @escaping @Sendable () -> Value
  ) -> Value? {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { close(ends[0]) }
    let box = Box<Value>()
    let done = ends[1]
    let isStarted = start {
      let result = body()
      box.value.withLock { $0 = result }
      // Tells the caller that the result is there.
      close(done)
    }
    guard isStarted else {
      close(done)
      return nil
    }
    var entry = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
    // After a signal, the wait starts over. Only signals that come more often than `limit` could extend it
    // without end.
    while poll(&entry, 1, limit) < 0, errno == EINTR {}
    return box.value.withLock { $0 }
  }

  /// The result of the work.
  private final class Box<Value: Sendable>: Sendable {
    let value = Locked<Value?>(nil)
  }
}
