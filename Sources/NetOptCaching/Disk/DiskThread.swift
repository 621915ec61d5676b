import Glibc
import NetOptLocking

/// A thread for what may wait: for files, for other processes. What is submitted runs one after the other, in order. The
/// thread begins with the first piece of work.
final class DiskThread: Sendable {
  /// What the thread shares with its owner. It has no reference to the owner, so that letting go of that can end it.
  private final class Queue: @unchecked Sendable {
    // Unchecked: a semaphore is made for several threads (sem_post(3)); it has one address for as long as it lives.
    private let ready = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    private let work = Locked<(items: [@Sendable () -> Void], isEnded: Bool)>(([], false))

    init() { sem_init(ready, 0, 0) }

    deinit {
      sem_destroy(ready)
      ready.deallocate()
    }

    /// Returns false when the queue has ended.
    func append(_ item: @escaping @Sendable () -> Void) -> Bool {
      let isTaken = work.withLock { work in
        if !work.isEnded { work.items.append(item) }
        return !work.isEnded
      }
      if isTaken { sem_post(ready) }
      return isTaken
    }

    var isEnded: Bool { work.withLock { $0.isEnded } }

    func end() {
      work.withLock { $0.isEnded = true }
      sem_post(ready)
    }

    func run() {
      while true {
        while sem_wait(ready) != 0, errno == EINTR {}
        let (items, isEnded) = work.withLock { work in
          let items = work.items
          work.items = []
          return (items, work.isEnded)
        }
        for item in items { item() }
        if isEnded { return }
      }
    }
  }

  private let queue = Queue()
  private let thread = Locked<pthread_t?>(nil)

  deinit {
    stop()
  }

  /// Ends the thread when everything that was submitted has run, and waits for that, unless another caller does already or
  /// this is the thread itself. It blocks the caller.
  func stop() {
    let handle = thread.withLock { handle in
      queue.end()
      return handle.take()
    }
    // Outside the lock: what still runs may submit more, and is refused.
    guard let handle else { return }
    // The last reference may have been in a piece of work.
    if pthread_equal(handle, pthread_self()) != 0 {
      pthread_detach(handle)
    } else {
      pthread_join(handle, nil)
    }
  }

  /// Has something run on the thread, after what was submitted before.
  ///
  /// - Returns: false when it will not run: the thread was stopped, or the system has none.
  func submit(_ work: @escaping @Sendable () -> Void) -> Bool {
    start() && queue.append(work)
  }

  /// Runs something on the thread, and waits for its result without blocking the caller's thread.
  ///
  /// - Returns: `nil` when it did not run.
  func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result? {
    await withCheckedContinuation { continuation in
      if !submit({ continuation.resume(returning: work()) }) { continuation.resume(returning: nil) }
    }
  }

  private func start() -> Bool {
    thread.withLock { handle in
      if handle != nil { return true }
      if queue.isEnded { return false }
      var new = pthread_t()
      let argument = Unmanaged.passRetained(queue)
      let code = pthread_create(
        &new, nil,
        { argument in
          guard let argument else { return nil }
          // Passed retained by the one who started the thread.
          Unmanaged<Queue>.fromOpaque(argument).takeRetainedValue().run()
          return nil
        }, argument.toOpaque())
      guard code == 0 else {
        argument.release()
        return false
      }
      handle = new
      return true
    }
  }
}
