import Glibc
import NetOptLocking

/// A thread for what may wait: for files, for other processes. What is submitted runs one after the other, in order. The
/// thread begins with the first piece of work.
final class DiskThread: Sendable {
  /// A piece of work, and what is done in its place when it will not run.
  private struct Item: Sendable {
    let run: @Sendable () -> Void
    let drop: @Sendable () -> Void
  }

  /// What the thread shares with its owner. It has no reference to the owner, so that letting go of that can end it.
  private final class Queue: @unchecked Sendable {
    // Unchecked: a semaphore is made for several threads (sem_post(3)); it has one address for as long as it lives.
    private let ready = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    private struct Work {
      private var items: [Item?] = []
      /// Those before it have begun, and are let go of.
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

    /// Ends it, and drops what has not begun.
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
        // One at a time, so that those behind it can be dropped.
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

  /// Drops what has not begun, and lets the thread end by itself when what it does has ended: the file system may hang.
  func abandon() {
    queue.abandon()
    if let handle = thread.withLock({ $0.take() }) { pthread_detach(handle) }
  }

  /// Has something run on the thread, after what was submitted before.
  ///
  /// - Parameter dropped: called when it will not run after all, because the thread is abandoned.
  /// - Returns: false when it will not run: the thread was stopped, or the system has none.
  func submit(
    _ work: @escaping @Sendable () -> Void, orElse dropped: @escaping @Sendable () -> Void = {}
  ) -> Bool {
    start() && queue.append(Item(run: work, drop: dropped))
  }

  /// Runs something on the thread, and waits for its result without blocking the caller's thread.
  ///
  /// - Returns: `nil` when it did not run.
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
