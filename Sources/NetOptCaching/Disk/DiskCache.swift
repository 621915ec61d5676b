import NetOptCore
import NetOptLocking

/// A disk store with its own thread, for callers on event loops and in tasks. Operations run in the order of
/// the calls.
package final class DiskCache: Sendable {
  /// The store. Direct calls to it block the caller.
  package let store: DiskStore
  private let thread = DiskThread()
  private let lookups = TimedLookups<[CacheEntry]>()
  private let closing = TimedLookups<Void>()
  private let waiting = Locked(Waiting())
  /// The maximum number of bytes that wait to be written, and the same maximum for bytes that wait to be
  /// removed. They do not count against the limits of the memory tier.
  private let mostWaiting: Int

  /// The work that waits for the disk, which may hang.
  private struct Waiting {
    /// The bytes of entries that wait to be written.
    var entries = 0
    /// The bytes of the removals that wait.
    var removals = 0
    /// Whether a removal of everything waits. Until it begins, no other work needs to be queued.
    var isClearing = false
  }

  /// Makes a cache for a store.
  ///
  /// - Parameter mostWaiting: the maximum number of bytes of entries that wait to be written; 8 MiB by
  ///   default. The cache does not write an entry that would exceed it.
  package init(_ store: DiskStore, mostWaiting: Int = 8 << 20) {
    self.store = store
    self.mostWaiting = mostWaiting
  }

  /// How long a caller waits for a look-up by default. A look-up takes some 50 us when no other process locks
  /// the database.
  package static let patience = Duration.seconds(1)

  /// The entries of a key, after all earlier insertions and removals.
  ///
  /// - Parameter limit: how long to wait. A result that comes later is discarded.
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

  /// Queues an entry to be written. The entries that it overlaps are removed even if it is not written.
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
    if !isSubmitted { waiting.withLock { $0.entries -= weight } }
  }

  /// Queues the removal of the entries that an entry overlaps.
  package func remove(_ entry: CacheEntry) {
    // Drops fields and body, so that the queue does not keep them in memory.
    let removal = CacheEntry(
      key: entry.key, selectors: entry.selectors, status: entry.status, fields: [:], body: [],
      requested: entry.requested, received: entry.received, fetchMicroseconds: 0)
    remove(removal.weight) { $0.remove(removal) }
  }

  /// Queues the removal of all entries of a key.
  package func removeAll(for key: CacheKey) {
    remove(key.text.utf8.count + key.partition.utf8.count) { $0.removeAll(for: key) }
  }

  /// - Parameter weight: the bytes that this removal keeps in memory while it waits. When waiting removals
  ///   take more than `mostWaiting`, one removal of everything replaces further ones.
  private func remove(_ weight: Int, _ work: @escaping @Sendable (DiskStore) -> Void) {
    let weight = weight + 256
    // Submits inside the lock. A caller that returns early because everything is being cleared must find the
    // disk empty afterwards.
    waiting.withLock { waiting in
      if waiting.isClearing { return }
      if waiting.removals + weight <= mostWaiting {
        waiting.removals += weight
        submit { [self] store in
          work(store)
          self.waiting.withLock { $0.removals -= weight }
        }
      } else {
        waiting.isClearing = true
        submit { [self] store in
          // This removal does not cover entries that come from now on.
          self.waiting.withLock { $0.isClearing = false }
          store.removeAll()
        }
      }
    }
  }

  /// Queues the removal of all entries.
  package func removeAll() { submit { $0.removeAll() } }

  /// Waits until all queued work is done and the hit counts are written.
  package func flush() async {
    let store = store
    _ = await thread.run { store.flush() }
  }

  /// The time and reason of the last eviction of one of the key's entries.
  package func eviction(of key: CacheKey) async -> (moment: Int64, reason: EvictionReason)? {
    let store = store
    return await thread.run { store.eviction(of: key) } ?? nil
  }

  /// Runs the caller's work on the thread.
  func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result? {
    await thread.run(work)
  }

  /// Performs the queued work, closes the database and ends the thread. Later calls do nothing.
  ///
  /// - Parameter limit: how long to wait; 5 s by default. When the disk takes longer, the cache drops work
  ///   that has not begun, and the thread ends when its current work returns.
  package func shutdown(within limit: Duration = .seconds(5)) async {
    let store = store
    let isClosed: Void? = await closing.perform(within: limit) { done in
      let isTaken = thread.submit {
        store.close()
        done(())
      } orElse: {
        done(())
      }
      if !isTaken { done(()) }
    }
    if isClosed == nil { thread.abandon() } else { thread.stop() }
  }

  /// Returns false when the work will not run.
  @discardableResult
  private func submit(_ work: @escaping @Sendable (DiskStore) -> Void) -> Bool {
    let store = store
    return thread.submit { work(store) }
  }
}
