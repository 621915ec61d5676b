import Synchronization

/// What a memory store has for one key.
final class MemorySlot: @unchecked Sendable {
  // Unchecked: `entries` and `next` are touched under the lock of the slot's shard, `place` under that of the queues; `key` and
  // `weight` are changed under both, so that either is enough to read them.

  /// That of the newest entry: one text for both.
  private(set) var key: CacheKey
  /// One for each set of selectors, the newest first. An array that is handed out as it is.
  private(set) var entries: [CacheEntry]
  /// What the slot takes.
  private(set) var weight: Int
  /// Another key with the same place in the shard.
  var next: MemorySlot?
  /// Where it is in the queues.
  var place: S3FIFO<MemorySlot>.Place = -1
  /// How often it was asked for since the queues looked at it last; as far as they count.
  private let visits = Atomic<Int>(0)

  init(_ key: CacheKey, _ entries: [CacheEntry]) {
    self.key = key
    self.entries = entries
    weight = Self.weight(of: entries)
  }

  /// Puts others in the place of the entries.
  func replace(_ entries: [CacheEntry]) {
    self.entries = entries
    if let newest = entries.first { key = newest.key }
    weight = Self.weight(of: entries)
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

  /// What a slot with such entries takes: they and the list of them, and itself. Tables are counted where they are.
  static func weight(of entries: [CacheEntry]) -> Int {
    entries.reduce(object + Allocation.array(of: entries.count, each: 8)) { $0 + $1.weight }
  }

  /// This object itself.
  static let object = 128
}
