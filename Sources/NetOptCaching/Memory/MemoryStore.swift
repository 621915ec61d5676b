import NetOptCore
import NetOptLocking

/// Entries in memory: what was asked for often or of late, weighed in bytes, and evicted by `S3FIFO`.
///
/// A hit takes the lock of one shard, counts a visit and shares the entries; it neither allocates nor copies, and never waits
/// for one that inserts or evicts elsewhere. The queues are one for all shards, because S3-FIFO touches them on a miss
/// alone: so capacity is not split, and the hit ratio is that of the undivided algorithm (docs/adr/0018).
///
/// All variants of a key live and are evicted together, sixteen of them at most. Safe from any thread.
package final class MemoryStore: CacheStore {
  /// What a store holds.
  package struct Usage: Hashable, Sendable {
    /// Bytes, with what it takes to keep them.
    package var bytes: Int
    /// Keys.
    package var keys: Int
  }

  /// How many variants of a key are kept: a server whose answers vary by something that never repeats must not push
  /// out everything else.
  private static let mostVariants = 16
  private static let shardCount = 16

  /// What the store keeps.
  package let limits: CacheLimits
  private let shards: [MemoryShard]
  private let queues: Locked<Queues>
  private let now: @Sendable () -> Int64

  private struct Queues: Sendable {
    var fifo: S3FIFO<MemorySlot>
    /// When the next shard is looked through for what is too old, and which one.
    var nextSweep = Int64.min
    var sweptShard = 0
  }

  /// Makes an empty store.
  ///
  /// - Parameters:
  ///   - limits: what it keeps; 64 MiB by default.
  ///   - now: the date in milliseconds since 1970, for `maxAge`.
  package init(_ limits: CacheLimits = .memory, now: @escaping @Sendable () -> Int64 = WallClock.now) {
    self.limits = limits
    self.now = now
    shards = (0..<Self.shardCount).map { _ in MemoryShard() }
    queues = Locked(Queues(fifo: Self.fifo(limits)))
  }

  private static func fifo(_ limits: CacheLimits) -> S3FIFO<MemorySlot> {
    S3FIFO(
      capacity: max(limits.maxBytes, 0), maxCount: max(limits.maxEntries ?? .max, 0),
      ghostCost: MemorySlot.ghostCost)
  }

  /// What the store holds now.
  package var usage: Usage {
    queues.withLock { Usage(bytes: $0.fifo.used, keys: $0.fifo.count) }
  }

  /// How large an entry may be to be kept.
  package var mostBytesOfEntry: Int { max(limits.maxBytes, 0) / 10 }

  private func shard(of key: CacheKey) -> MemoryShard {
    shards[Int(truncatingIfNeeded: key.place >> 32) & (Self.shardCount - 1)]
  }

  /// The entries of a key. Those that are too old are left out.
  package func entries(for key: CacheKey) -> [CacheEntry] {
    let found = shard(of: key).table.withLock { table -> [CacheEntry] in
      guard let slot = table.slot(of: key) else { return [] }
      slot.visit()
      return slot.entries
    }
    guard let maxAge = limits.maxAgeMilliseconds, !found.isEmpty else { return found }
    let oldest = now() - maxAge
    return found.allSatisfy { $0.received >= oldest } ? found : found.filter { $0.received >= oldest }
  }

  /// Keeps an entry in the place of the one with the same selectors. One that is larger than a tenth of `maxBytes` is
  /// not kept, and the one in its place is forgotten.
  package func insert(_ entry: CacheEntry) {
    change(entry.key) { old in
      var entries = old.filter { $0.selectors != entry.selectors }
      guard MemorySlot.weight(of: [entry]) <= mostBytesOfEntry else { return entries }
      entries.insert(entry, at: 0)
      while entries.count > Self.mostVariants || MemorySlot.weight(of: entries) > mostBytesOfEntry {
        entries.removeLast()
      }
      return entries
    }
  }

  /// Forgets the entry, and what is older with the same selectors.
  package func remove(_ entry: CacheEntry) {
    change(entry.key) { old in
      old.filter { $0.selectors != entry.selectors || $0.received > entry.received }
    }
  }

  /// Forgets all entries of a key.
  package func removeAll(for key: CacheKey) { change(key) { _ in [] } }

  /// Forgets everything, what was evicted lately included.
  package func removeAll() {
    queues.withLock { queues in
      for shard in shards {
        shard.table.withLock { table in
          table.slots = [:]
          table.changes += 1
        }
      }
      queues.fifo = Self.fifo(limits)
    }
  }

  // MARK: Coming up from another tier

  /// A mark of what the store knows about a key and some others: another one after every insertion and removal.
  package func mark(of key: CacheKey) -> UInt64 { shard(of: key).table.withLock { $0.changes } }

  /// Keeps what another tier had of a key, unless something was put in or taken out since the mark was taken: what has been
  /// forgotten meanwhile must not come back.
  package func promote(_ entries: [CacheEntry], for key: CacheKey, since mark: UInt64) {
    change(key, since: mark) { old in
      guard old.isEmpty else { return old }
      var kept = Array(entries.prefix(Self.mostVariants))
      while !kept.isEmpty, MemorySlot.weight(of: kept) > mostBytesOfEntry { kept.removeLast() }
      return kept
    }
  }

  // MARK: Changes

  /// Replaces the entries of a key by what the closure makes of them. The queues are locked first, the shards inside,
  /// one at a time.
  private func change(
    _ key: CacheKey, since mark: UInt64? = nil, _ update: ([CacheEntry]) -> [CacheEntry]
  ) {
    let shard = shard(of: key)
    queues.withLock { queues in
      let (slot, entries) = shard.table.withLock { table -> (MemorySlot?, [CacheEntry]?) in
        if let mark, table.changes != mark { return (nil, nil) }
        table.changes += 1
        let slot = table.slot(of: key)
        let entries = update(slot?.entries ?? [])
        if let slot {
          slot.entries = entries
          if entries.isEmpty { table.remove(slot) }
        }
        return (slot, entries)
      }
      guard let entries else { return }
      if let slot {
        if entries.isEmpty {
          queues.fifo.remove(slot.place)
        } else {
          queues.fifo.resize(
            slot.place, to: MemorySlot.weight(of: entries), visits: { $0.takeVisits() }, evicted: drop)
        }
      } else if !entries.isEmpty {
        add(MemorySlot(key, entries), to: shard, &queues)
      }
      sweep(&queues)
    }
  }

  private func add(_ slot: MemorySlot, to shard: MemoryShard, _ queues: inout Queues) {
    let place = queues.fifo.insert(
      slot, fingerprint: slot.key.place, size: MemorySlot.weight(of: slot.entries),
      visits: { $0.takeVisits() }, evicted: drop)
    guard let place else { return }
    slot.place = place
    shard.table.withLock { $0.add(slot) }
  }

  private func drop(_ slot: MemorySlot) { shard(of: slot.key).table.withLock { $0.remove(slot) } }

  /// Looks through one shard, when it is time, for what is too old: each has its turn four times in `maxAge`.
  private func sweep(_ queues: inout Queues) {
    guard let maxAge = limits.maxAgeMilliseconds else { return }
    let now = now()
    guard now >= queues.nextSweep else { return }
    queues.nextSweep = now + maxAge / Int64(4 * Self.shardCount)
    queues.sweptShard = (queues.sweptShard + 1) % Self.shardCount
    let old = shards[queues.sweptShard].table.withLock { table -> [MemorySlot] in
      var old: [MemorySlot] = []
      for first in table.slots.values {
        var slot: MemorySlot? = first
        while let each = slot {
          if each.entries.allSatisfy({ $0.received < now - maxAge }) { old.append(each) }
          slot = each.next
        }
      }
      for slot in old { table.remove(slot) }
      return old
    }
    for slot in old { queues.fifo.remove(slot.place) }
  }
}
