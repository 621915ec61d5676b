import Glibc
import NetOptLocking

/// Work on a thread of its own, for whose result the caller waits for a limited time. For functions of OpenSSL
/// that nothing can interrupt. After the time limit the thread goes on until its work ends.
final class BoundedWork: Sendable {
  private let body: @Sendable () -> Void
  /// The end of a pipe that the thread closes when the work has ended.
  private let done: Int32

  private init(_ done: Int32, _ body: @escaping @Sendable () -> Void) {
    self.done = done
    self.body = body
  }

  /// Performs some work.
  ///
  /// - Parameter limit: the longest time to wait, in milliseconds.
  /// - Returns: the result; `nil` when it is not ready in time, and without a descriptor or a thread.
  static func perform<Result: Sendable>(
    within limit: Int32, _ body: @escaping @Sendable () -> Result
  ) -> Result? {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { close(ends[0]) }
    let box = Box<Result>()
    let work = Unmanaged.passRetained(
      BoundedWork(ends[1]) {
        let result = body()
        box.value.withLock { $0 = result }
      })
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { pointer in
        guard let pointer else { return nil }
        let work = Unmanaged<BoundedWork>.fromOpaque(pointer).takeRetainedValue()
        work.body()
        close(work.done)
        return nil
      }, work.toOpaque())
    guard code == 0 else {
      work.release()
      close(ends[1])
      return nil
    }
    pthread_detach(thread)
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
