import Glibc
import NetOptLocking

/// Work on a thread of its own. For functions of OpenSSL that take long and that nothing can interrupt: on the
/// threads of Swift's pool, they would hold up all tasks.
package final class OwnThread: Sendable {
  private let body: @Sendable () -> Void

  private init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  /// Starts some work.
  ///
  /// - Returns: false when the system has no thread for it.
  static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
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

  /// Performs some work, and waits for it without holding a thread. Without a thread for the work, it is
  /// performed on the caller's.
  package static func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
      let work: @Sendable () -> Void = { continuation.resume(returning: body()) }
      if !start(work) { work() }
    }
  }

  /// Performs some work, and waits for its result for a limited time. After that, the thread goes on until its
  /// work ends.
  ///
  /// - Parameter limit: the longest time to wait, in milliseconds.
  /// - Returns: the result; `nil` when it is not ready in time, and without a descriptor or a thread.
  static func perform<Value: Sendable>(
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
    // An interrupted wait begins again: a signal every 10 s would be needed to wait for ever.
    while poll(&entry, 1, limit) < 0, errno == EINTR {}
    return box.value.withLock { $0 }
  }

  /// The result of the work.
  private final class Box<Value: Sendable>: Sendable {
    let value = Locked<Value?>(nil)
  }
}
