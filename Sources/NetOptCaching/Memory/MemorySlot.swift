import Synchronization

/// The entries of one key in a memory store.
final class MemorySlot: @unchecked Sendable {
  // Unchecked: the lock of the slot's shard protects `entries` and `next`; the lock of the queues protects
  // `queueIndex`. `key` and `weight` change only under both locks, so either lock is enough to read them.

  /// The key of the newest entry. Slot and entry share one string.
  private(set) var key: CacheKey
  /// One entry for each set of selectors, newest first. Callers get this array itself, not a copy.
  private(set) var entries: [CacheEntry]
  /// The bytes that the slot takes.
  private(set) var weight: Int
  /// The next slot in the chain of keys with the same hash in the shard.
  var next: MemorySlot?
  /// The index of the slot in the queues.
  var queueIndex: S3FIFO<MemorySlot>.Index = -1
  /// The number of visits since the queues read it last; at most 3, because the queues count no further.
  private let visits = Atomic<Int>(0)

  init(_ key: CacheKey, _ entries: [CacheEntry]) {
    self.key = key
    self.entries = entries
    weight = Self.weight(of: entries)
  }

  /// Replaces the entries.
  func replace(_ entries: [CacheEntry]) {
    self.entries = entries
    if let newest = entries.first { key = newest.key }
    weight = Self.weight(of: entries)
  }

  /// Counts a visit. When the queues reset the count at the same time, this visit may be lost, which does no
  /// harm.
  func visit() {
    let count = visits.load(ordering: .relaxed)
    if count < 3 { visits.store(count + 1, ordering: .relaxed) }
  }

  /// Returns the visits since the last call, and resets the count.
  func takeVisits() -> Int {
    visits.load(ordering: .relaxed) == 0 ? 0 : visits.exchange(0, ordering: .relaxed)
  }

  /// The bytes of a slot with these entries: the entries, their array and the slot object. `TableSize` counts
  /// the tables separately.
  static func weight(of entries: [CacheEntry]) -> Int {
    entries.reduce(object + Allocation.array(of: entries.count, each: 8)) { $0 + $1.weight }
  }

  /// The bytes of the slot object itself.
  static let object = 128
}
