import Glibc

/// A thread for work that may block on files or other processes. Work runs in the order in which it was
/// submitted. The thread starts with the first submission.
package final class DiskThread: Sendable {
  /// A piece of work that was submitted.
  private struct Item: Sendable {
    /// The work.
    let run: @Sendable () -> Void
    /// Runs instead of the work when the thread is abandoned before the work begins.
    let drop: @Sendable () -> Void
  }

  /// The queue of work, which the system thread and the `DiskThread` share. The system thread holds only the
  /// queue and not the `DiskThread`, so that the `deinit` of the `DiskThread` can run and end the thread.
  private final class Queue: @unchecked Sendable {
    // Unchecked: several threads may use a semaphore (sem_post(3)), and its address does not change while it
    // exists.

    /// A semaphore. It counts the calls of `append`, `end` and `abandon` that `run` has not yet seen.
    private let ready = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    /// The items of the queue, oldest first.
    private struct Work {
      /// The submitted items, oldest first. Items that were taken are `nil`.
      private var items: [Item?] = []
      /// The index of the first item that was not taken.
      private var next = 0
      /// Whether the queue rejects new items.
      var isEnded = false

      /// Adds an item at the end.
      mutating func append(_ item: Item) { items.append(item) }

      /// Returns the oldest item and removes it from the queue; `nil` when the queue is empty.
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

      /// Returns all items and empties the queue.
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

    /// Adds an item.
    ///
    /// - Returns: false when the queue has ended and rejects the item.
    func append(_ item: Item) -> Bool {
      let isTaken = work.withLock { work in
        if !work.isEnded { work.append(item) }
        return !work.isEnded
      }
      if isTaken { sem_post(ready) }
      return isTaken
    }

    /// Whether the queue rejects new items.
    var isEnded: Bool { work.withLock { $0.isEnded } }

    /// Makes the queue reject new items. The thread ends after the items that it already has.
    func end() {
      work.withLock { $0.isEnded = true }
      sem_post(ready)
    }

    /// Makes the queue reject new items, and calls `drop` of each item that has not begun.
    func abandon() {
      let items = work.withLock { work in
        work.isEnded = true
        return work.takeAll()
      }
      for item in items { item.drop() }
      sem_post(ready)
    }

    /// Runs the items until the queue has ended and is empty. This is the body of the system thread.
    func run() {
      while true {
        while sem_wait(ready) != 0, errno == EINTR {}
        // Takes one item at a time, so that `abandon` can drop the items after the running one.
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

  /// Whether the thread takes no more work, because of `stop` or `abandon`.
  package var isStopped: Bool { queue.isEnded }

  private let queue = Queue()
  /// The running system thread; `nil` before the first submission, and after `stop` or `abandon`.
  private let thread = Locked<pthread_t?>(nil)

  /// Makes a thread that has not started.
  package init() {}

  deinit {
    stop()
  }

  /// Lets the thread finish all submitted work, and blocks the caller until the thread has ended. The
  /// function returns at once when another call of `stop` already waits, or when it runs on the thread
  /// itself.
  package func stop() {
    let handle = thread.withLock { handle in
      queue.end()
      return handle.take()
    }
    // Waits without the lock, because work that is still running may call `submit`, which takes the lock. The
    // queue rejects what it submits.
    guard let handle else { return }
    // `stop` runs on the thread itself when a piece of work releases the last reference to this object.
    if pthread_equal(handle, pthread_self()) != 0 {
      pthread_detach(handle)
    } else {
      pthread_join(handle, nil)
    }
  }

  /// Drops the work that has not begun, and returns without waiting for the work that is running. The thread
  /// ends after this work. Use it when a file system may hang.
  package func abandon() {
    queue.abandon()
    if let handle = thread.withLock({ $0.take() }) { pthread_detach(handle) }
  }

  /// Submits work to the thread, after all earlier work.
  ///
  /// - Parameter dropped: runs instead when the thread is abandoned before the work begins.
  /// - Returns: false when the work will not run, because the thread was stopped or the system could not
  ///   create it.
  package func submit(
    _ work: @escaping @Sendable () -> Void, orElse dropped: @escaping @Sendable () -> Void = {}
  ) -> Bool {
    start() && queue.append(Item(run: work, drop: dropped))
  }

  /// Runs work on the thread, and waits for its result without blocking the caller's thread.
  ///
  /// - Returns: `nil` when the work did not run.
  package func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value? {
    await withCheckedContinuation { continuation in
      let isTaken = submit {
        continuation.resume(returning: work())
      } orElse: {
        continuation.resume(returning: nil)
      }
      if !isTaken { continuation.resume(returning: nil) }
    }
  }

  /// Starts the system thread if it does not run yet.
  ///
  /// - Returns: whether the thread runs.
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
