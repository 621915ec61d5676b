import Synchronization

/// The entries of one key in a memory store.
final class MemorySlot: @unchecked Sendable {
  // Unchecked: the lock of the slot's shard protects `entries` and `next`; the lock of the queues protects
  // `queueIndex`. `key` and `weight` change only under both locks, so either lock is enough to read them.

  /// The key of the slot, as a copy of the newest entry's `key`. So the slot and this entry share the memory
  /// of the strings.
  private(set) var key: CacheKey
  /// The entries of the key, one for each set of selectors, newest first. A hit returns this array without
  /// copying its storage.
  private(set) var entries: [CacheEntry]
  /// The memory that the slot takes with its entries, in bytes.
  private(set) var weight: Int
  /// The next slot in the shard whose key has the same hash; `nil` at the end of this chain.
  var next: MemorySlot?
  /// The index of the slot in the queues of `S3FIFO`; -1 before the slot is in them.
  var queueIndex: S3FIFO<MemorySlot>.Index = -1
  /// The number of hits since `takeVisits` was called last; at most 3, because the queues count no further.
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

  /// Counts a hit. If another thread resets or increases the count at the same time, a hit may be lost or
  /// stay counted. This does no harm, because the count only guides evictions.
  func visit() {
    let count = visits.load(ordering: .relaxed)
    if count < 3 { visits.store(count + 1, ordering: .relaxed) }
  }

  /// Returns the number of visits since the last call, and resets it to 0.
  func takeVisits() -> Int {
    visits.load(ordering: .relaxed) == 0 ? 0 : visits.exchange(0, ordering: .relaxed)
  }

  /// The memory that a slot with these entries takes, in bytes: the entries, their array and the slot object.
  /// The tables that refer to the slot count separately (`TableSize`).
  static func weight(of entries: [CacheEntry]) -> Int {
    entries.reduce(object + Allocation.array(of: entries.count, each: 8)) { $0 + $1.weight }
  }

  /// The size of the slot object in bytes, without its entries.
  static let object = 128
}
