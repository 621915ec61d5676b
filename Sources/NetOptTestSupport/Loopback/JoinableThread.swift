import Glibc
import NetOptCore
import NetOptLocking

/// A thread that other threads can join (pthread_join(3)), unlike Foundation's `Thread`.
package final class JoinableThread: Sendable {
  /// The closure of a thread, as an object that pthread_create(3) can carry as a pointer.
  private final class Work: Sendable {
    /// The code that the thread runs.
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// The thread; `nil` after `join`, because a thread may be joined only once.
  private let thread: Locked<pthread_t?>

  /// Starts a thread.
  ///
  /// - Throws: `TestSupportError` when the system cannot create the thread.
  package init(_ body: @escaping @Sendable () -> Void) throws {
    let work = Unmanaged.passRetained(Work(body))
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { context in
        if let context { Unmanaged<Work>.fromOpaque(context).takeRetainedValue().body() }
        return nil
      }, work.toOpaque())
    guard status == 0 else {
      work.release()
      throw systemError("no thread could be started", code: status)
    }
    self.thread = Locked(thread)
  }

  /// Waits for the end of the thread. Call this at least once; otherwise the thread's stack is never freed.
  package func join() {
    thread.withLock { thread in
      guard let running = thread else { return }
      pthread_join(running, nil)
      thread = nil
    }
  }
}
