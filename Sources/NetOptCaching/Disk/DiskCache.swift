import NetOptCore
import NetOptLocking

/// A `DiskStore` with a thread of its own. The thread does the work, so that event loops and tasks do not
/// block. Operations run in the order of the calls.
package final class DiskCache: Sendable {
  /// The store. Calls to it block the caller while it reads, writes or waits for other processes.
  package let store: DiskStore
  private let thread = DiskThread()
  /// The look-ups that callers wait for, with their time limits.
  private let lookups = TimedLookups<[CacheEntry]>()
  /// Limits how long `usage` waits.
  private let usages = TimedLookups<DiskUsage?>()
  /// Limits how long `shutdown` waits until the store is closed.
  private let closing = TimedLookups<Void>()
  /// The amount of memory that queued work takes.
  private let waiting = Locked(Waiting())
  /// The maximum number of bytes of entries that wait to be written. The same maximum applies to the bytes of
  /// waiting removals. These bytes do not count against the limits of the memory tier.
  private let mostWaiting: Int

  /// The amount of memory that queued work takes. Work piles up in the queue when the disk is slow or hangs.
  private struct Waiting {
    /// The bytes of the entries that wait to be written.
    var entries = 0
    /// The bytes of memory that waiting removals take.
    var removals = 0
    /// Whether the removal of all entries is in the queue, because too many single removals waited. Until
    /// that removal begins, the cache queues no further entry and no single removal. The removal of all
    /// entries covers the single ones.
    var isClearing = false
  }

  /// Makes a cache for a store.
  ///
  /// - Parameter mostWaiting: the maximum number of bytes of entries that wait to be written; 8 MiB by
  ///   default. An entry that would exceed it is not written. The same maximum applies to waiting removals.
  ///   When they would exceed it, everything is removed.
  package init(_ store: DiskStore, mostWaiting: Int = 8 << 20) {
    self.store = store
    self.mostWaiting = mostWaiting
  }

  /// How long a caller waits for a look-up by default. A look-up takes about 50 µs when no other process
  /// locks the database.
  package static let patience = Duration.seconds(1)

  /// The entries of a key. The look-up comes after all insertions and removals that were queued before it.
  ///
  /// - Parameter limit: how long to wait. After this time the result is empty, and a result that comes later
  ///   is discarded. As long as that result has not come, all further look-ups return an empty result at
  ///   once.
  package func entries(for key: CacheKey, within limit: Duration = patience) async -> [CacheEntry] {
    let store = store
    return await lookups.perform(within: limit) { found in
      let isTaken = thread.submit {
        found(store.entries(for: key))
      } orElse: {
        found([])
      }
      if !isTaken { found([]) }
    } ?? []
  }

  /// Queues the writing of an entry. The write also removes the stored entries that the entry overlaps
  /// (`CacheEntry.overlaps`). When too much work waits, the entry is not written, but the stored entries that
  /// it overlaps are removed all the same.
  package func insert(_ entry: CacheEntry) {
    let weight = entry.weight
    let isTaken = waiting.withLock { waiting in
      guard !waiting.isClearing, waiting.entries + weight <= mostWaiting else { return false }
      waiting.entries += weight
      return true
    }
    guard isTaken else { return remove(entry) }
    let isSubmitted = submit { [self] store in
      store.insert(entry)
      waiting.withLock { $0.entries -= weight }
    }
    if !isSubmitted {
      waiting.withLock { $0.entries -= weight }
      remove(entry)
    }
  }

  /// Queues the removal of the stored entries that an entry overlaps.
  package func remove(_ entry: CacheEntry) {
    // Leaves out the fields and the body, so that the queue does not keep them in memory.
    let removal = CacheEntry(
      key: entry.key, selectors: entry.selectors, status: entry.status, fields: [:], body: [],
      requested: entry.requested, received: entry.received, fetchMicroseconds: 0)
    remove(.entries(of: entry.key), removal.weight) { $0.remove(removal) }
  }

  /// Queues the removal of all entries of a key.
  package func removeAll(for key: CacheKey) {
    remove(.entries(of: key), key.text.utf8.count + key.partition.utf8.count) { $0.removeAll(for: key) }
  }

  /// Queues a removal. When the waiting removals would take more than `mostWaiting`, queues one removal of
  /// everything instead. Until the removal of everything begins, this function queues nothing more.
  ///
  /// - Parameters:
  ///   - removal: what the store removes before any later work if the system cannot create the thread.
  ///   - weight: the bytes of memory that the removal takes while it waits. The function adds a fixed
  ///     overhead.
  ///   - work: performs the removal.
  private func remove(
    _ removal: PendingRemovals.Removal, _ weight: Int, _ work: @escaping @Sendable (DiskStore) -> Void
  ) {
    let weight = weight + 256
    // The work is submitted under the lock. A caller that returns early because `isClearing` is set then
    // knows that the removal of everything is already in the queue, before all work that the caller submits
    // later.
    let missed = waiting.withLock { waiting -> PendingRemovals.Removal? in
      if waiting.isClearing { return nil }
      if waiting.removals + weight <= mostWaiting {
        let isSubmitted = submit { [self] store in
          work(store)
          self.waiting.withLock { $0.removals -= weight }
        }
        if isSubmitted { waiting.removals += weight }
        return isSubmitted ? nil : removal
      }
      let isSubmitted = submit { [self] store in
        // The removal does not cover entries that are queued from now on.
        self.waiting.withLock { $0.isClearing = false }
        store.removeAll()
      }
      waiting.isClearing = isSubmitted
      return isSubmitted ? nil : .everything
    }
    if let missed { removeLater(missed) }
  }

  /// Queues the removal of all entries.
  package func removeAll() {
    if !submit({ $0.removeAll() }) { removeLater(.everything) }
  }

  /// Makes a removal pending in the store, because its work could not be queued. Too many of them become the
  /// removal of everything (`PendingRemovals`). Does nothing after a shutdown: the cache does not use the store any
  /// more, and the thread may still hold the lock of the store.
  private func removeLater(_ removal: PendingRemovals.Removal) {
    if !thread.isStopped { store.removeLater(removal) }
  }

  /// Removes the entries of a selection, after all queued work. Other work may run between the batches of the
  /// removal. Returns when the removal is done, or when the cache was shut down. There is no time limit: when
  /// the disk hangs, so does the removal. If the system cannot create the thread, the store performs the
  /// removal before any later work.
  package func remove(_ selection: CacheSelection) async {
    let store = store
    var position: RemovalPosition? = RemovalPosition()
    while let next = position {
      guard let result = await thread.run({ store.remove(selection, from: next) }) else {
        return removeLater(.selection(selection))
      }
      position = result
    }
  }

  /// The number of entries, their disk space and the last evictions. `nil` when the directory cannot be used,
  /// when the disk does not answer within `patience`, and after `shutdown`.
  package func usage() async -> DiskUsage? {
    let store = store
    return await usages.perform(within: Self.patience) { found in
      let isTaken = thread.submit {
        found(store.usage())
      } orElse: {
        found(nil)
      }
      if !isTaken { found(nil) }
    } ?? nil
  }

  /// Waits until all queued work is done and the store has written its hit counts.
  package func flush() async {
    let store = store
    _ = await thread.run { store.flush() }
  }

  /// When and why an entry of the key was last evicted; `nil` when that is unknown. `moment` is in
  /// milliseconds since 1970.
  package func eviction(of key: CacheKey) async -> (moment: Int64, reason: EvictionReason)? {
    let store = store
    return await thread.run { store.eviction(of: key) } ?? nil
  }

  /// Runs work on the thread, after all queued work. Returns `nil` when the work does not run, because the
  /// cache was shut down or the system could not create the thread.
  func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result? {
    await thread.run(work)
  }

  /// Performs the queued work, closes the database and ends the thread. Later calls do nothing.
  ///
  /// - Parameter limit: how long to wait; 5 s by default. When the work takes longer, the cache drops the
  ///   work that has not begun. The thread then ends when its current work returns.
  package func shutdown(within limit: Duration = .seconds(5)) async {
    let store = store
    let isClosed: Void? = await closing.perform(within: limit) { done in
      let isTaken = thread.submit {
        store.close()
        done(())
      } orElse: {
        done(())
      }
      guard !isTaken else { return }
      if thread.isStopped { return done(()) }
      // The system gave no thread. `close` performs the removals that are left.
      Task.detached {
        store.close()
        done(())
      }
    }
    if isClosed == nil { thread.abandon() } else { thread.stop() }
  }

  /// Queues work for the thread. Returns `false` when the work will not run, because the thread has ended or
  /// could not be started.
  private func submit(_ work: @escaping @Sendable (DiskStore) -> Void) -> Bool {
    let store = store
    return thread.submit { work(store) }
  }
}
