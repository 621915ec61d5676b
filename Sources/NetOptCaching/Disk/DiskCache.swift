import NetOptCore
import NetOptLocking

/// A disk store on a thread of its own: what callers on event loops and in tasks use. Everything happens in the order in
/// which it was asked for.
package final class DiskCache: Sendable {
  /// The store. Whoever uses it directly waits for it.
  package let store: DiskStore
  private let thread = DiskThread()
  private let lookUps = LookUps<[CacheEntry]>()
  private let closing = LookUps<Void>()
  private let waiting = Locked(Waiting())
  /// How many bytes may wait to be written, and to be removed. They are not in the bounds of the memory tier.
  private let mostWaiting: Int

  /// What waits for the disk, which may hang.
  private struct Waiting {
    /// The bytes of entries that wait to be written.
    var entries = 0
    /// The bytes of marks of what waits to be removed.
    var removals = 0
    /// Whether everything waits to be removed: then nothing else needs to wait.
    var isClearing = false
  }

  /// Makes a cache of a store.
  ///
  /// - Parameter mostWaiting: how many bytes of entries may wait to be written; 8 MiB by default. What comes when there are
  ///   more is not written.
  package init(_ store: DiskStore, mostWaiting: Int = 8 << 20) {
    self.store = store
    self.mostWaiting = mostWaiting
  }

  /// How long a look-up is waited for, unless the caller says less. It takes some 50 us when nobody holds the database.
  package static let patience = Duration.seconds(1)

  /// The entries of a key, after what was inserted and removed before.
  ///
  /// - Parameter limit: how long they are waited for; with what comes later nothing is done.
  package func entries(for key: CacheKey, within limit: Duration = patience) async -> [CacheEntry] {
    let store = store
    return await lookUps.perform(within: limit) { found in
      let isTaken = thread.submit {
        found(store.entries(for: key))
      } orElse: {
        found([])
      }
      if !isTaken { found([]) }
    } ?? []
  }

  /// Has an entry written, soon. What it takes the place of is forgotten in any case.
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

  /// Has what an entry overlaps forgotten soon.
  package func remove(_ entry: CacheEntry) {
    // Without fields and body, which would be kept until then.
    let mark = CacheEntry(
      key: entry.key, selectors: entry.selectors, status: entry.status, fields: [:], body: [],
      requested: entry.requested, received: entry.received, fetchMicroseconds: 0)
    remove(mark.weight) { $0.remove(mark) }
  }

  /// Has all entries of a key forgotten soon.
  package func removeAll(for key: CacheKey) {
    remove(key.text.utf8.count + key.partition.utf8.count) { $0.removeAll(for: key) }
  }

  /// - Parameter weight: how many bytes wait with it. When there are too many, everything is removed instead: that is one piece of work.
  private func remove(_ weight: Int, _ work: @escaping @Sendable (DiskStore) -> Void) {
    let weight = weight + 256
    // Submitted within the lock: whoever leaves without removing anything finds the disk empty afterwards.
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
          // What comes from now on is not removed by this.
          self.waiting.withLock { $0.isClearing = false }
          store.removeAll()
        }
      }
    }
  }

  /// Has everything forgotten soon.
  package func removeAll() { submit { $0.removeAll() } }

  /// Waits until everything that was asked for is done, and the number of hits is written down.
  package func flush() async {
    let store = store
    _ = await thread.run { store.flush() }
  }

  /// When and why the key's last entry was evicted.
  package func eviction(of key: CacheKey) async -> (moment: Int64, reason: EvictionReason)? {
    let store = store
    return await thread.run { store.eviction(of: key) } ?? nil
  }

  /// Runs something of the caller's on the thread.
  func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result? {
    await thread.run(work)
  }

  /// Does what was asked for, closes the database and ends the thread. What is asked for later is not done.
  ///
  /// - Parameter limit: how long it is waited for. When a disk takes longer what has not begun is dropped, and the thread ends when the disk
  ///   lets it.
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

  /// Returns false when it will not be done.
  @discardableResult
  private func submit(_ work: @escaping @Sendable (DiskStore) -> Void) -> Bool {
    let store = store
    return thread.submit { work(store) }
  }
}
