import Glibc
import NetOptLocking

/// A thread for work that may block on files or other processes. Work runs in the order in which it was
/// submitted. The thread starts with the first submission.
final class DiskThread: Sendable {
  /// A piece of work, and the action that runs instead when the work is dropped.
  private struct Item: Sendable {
    let run: @Sendable () -> Void
    let drop: @Sendable () -> Void
  }

  /// The state that the thread shares with its owner. It has no reference to the owner, so that the owner's
  /// `deinit` can end the thread.
  private final class Queue: @unchecked Sendable {
    // Unchecked: several threads may use a semaphore (sem_post(3)), and its address does not change while it
    // exists.
    private let ready = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    private struct Work {
      private var items: [Item?] = []
      /// The index of the next item. The items before it have begun and are released.
      private var next = 0
      var isEnded = false

      mutating func append(_ item: Item) { items.append(item) }

      mutating func takeNext() -> Item? {
        guard next < items.count else { return nil }
        let item = items[next].take()
        next += 1
        if next > 64, next * 2 > items.count {
          items.removeFirst(next)
          next = 0
        }
        return item
      }

      mutating func takeAll() -> [Item] {
        defer { (items, next) = ([], 0) }
        return items.compactMap(\.self)
      }
    }

    private let work = Locked(Work())

    init() { sem_init(ready, 0, 0) }

    deinit {
      sem_destroy(ready)
      ready.deallocate()
    }

    /// Returns false when the queue has ended.
    func append(_ item: Item) -> Bool {
      let isTaken = work.withLock { work in
        if !work.isEnded { work.append(item) }
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

    /// Ends the queue, and drops the items that have not begun.
    func abandon() {
      let items = work.withLock { work in
        work.isEnded = true
        return work.takeAll()
      }
      for item in items { item.drop() }
      sem_post(ready)
    }

    func run() {
      while true {
        while sem_wait(ready) != 0, errno == EINTR {}
        // Takes one item at a time, so that `abandon` can drop the others.
        while true {
          let (item, isEnded) = work.withLock { ($0.takeNext(), $0.isEnded) }
          if let item {
            item.run()
          } else if isEnded {
            return
          } else {
            break
          }
        }
      }
    }
  }

  private let queue = Queue()
  private let thread = Locked<pthread_t?>(nil)

  deinit {
    stop()
  }

  /// Ends the thread after all submitted work and waits for that. It does not wait when another caller
  /// already does, or when it runs on the thread itself. Blocks the caller.
  func stop() {
    let handle = thread.withLock { handle in
      queue.end()
      return handle.take()
    }
    // Waits outside the lock: running work may submit more, which the queue rejects.
    guard let handle else { return }
    // The call runs on the thread itself when a piece of work held the last reference.
    if pthread_equal(handle, pthread_self()) != 0 {
      pthread_detach(handle)
    } else {
      pthread_join(handle, nil)
    }
  }

  /// Drops work that has not begun, and lets the thread end by itself after its current work: the file system
  /// may hang.
  func abandon() {
    queue.abandon()
    if let handle = thread.withLock({ $0.take() }) { pthread_detach(handle) }
  }

  /// Submits work to the thread, after all earlier work.
  ///
  /// - Parameter dropped: runs instead when the thread is abandoned before the work begins.
  /// - Returns: false when the work will not run, because the thread was stopped or the system could not
  ///   create it.
  func submit(
    _ work: @escaping @Sendable () -> Void, orElse dropped: @escaping @Sendable () -> Void = {}
  ) -> Bool {
    start() && queue.append(Item(run: work, drop: dropped))
  }

  /// Runs work on the thread, and waits for its result without blocking the caller's thread.
  ///
  /// - Returns: `nil` when the work did not run.
  func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result? {
    await withCheckedContinuation { continuation in
      let isTaken = submit {
        continuation.resume(returning: work())
      } orElse: {
        continuation.resume(returning: nil)
      }
      if !isTaken { continuation.resume(returning: nil) }
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
          // `start` passed the queue retained.
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
