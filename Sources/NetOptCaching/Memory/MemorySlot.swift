import Synchronization

/// What a memory store has for one key.
final class MemorySlot: @unchecked Sendable {
  // Unchecked: `entries` and `next` are touched under the lock of the slot's shard, `place` under that of the queues.

  let key: CacheKey
  /// One for each set of selectors, the newest first. An array that is handed out as it is.
  var entries: [CacheEntry]
  /// Another key with the same place in the shard.
  var next: MemorySlot?
  /// Where it is in the queues.
  var place: S3FIFO<MemorySlot>.Place = -1
  /// How often it was asked for since the queues looked at it last; as far as they count.
  private let visits = Atomic<Int>(0)

  init(_ key: CacheKey, _ entries: [CacheEntry]) {
    self.key = key
    self.entries = entries
  }

  /// Counts a visit. The queues may take the count at the same time: then a visit is lost, which is no harm.
  func visit() {
    let count = visits.load(ordering: .relaxed)
    if count < 3 { visits.store(count + 1, ordering: .relaxed) }
  }

  /// The visits since the last time this was asked.
  func takeVisits() -> Int {
    visits.load(ordering: .relaxed) == 0 ? 0 : visits.exchange(0, ordering: .relaxed)
  }

  /// What the slot takes: the entries, itself, its places in the shard's table and in the queues, both of which may be
  /// half empty.
  static func weight(of entries: [CacheEntry]) -> Int {
    entries.reduce(320) { $0 + $1.weight + 8 }
  }

  /// What remembering it takes when it is gone.
  static let ghostCost = 96
}
