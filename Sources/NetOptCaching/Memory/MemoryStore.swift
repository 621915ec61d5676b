import NetOptCore
import NetOptLocking

/// The memory tier of the cache. It weighs entries in bytes and evicts them with `S3FIFO`, which keeps
/// frequently and recently requested entries.
///
/// A hit takes the lock of one shard, counts a visit and returns the shared array of entries. A hit does not
/// allocate or copy, and does not wait for insertions or evictions in other shards. All shards share one set
/// of queues, because S3-FIFO changes its queues only on a miss. So the capacity is not split between shards,
/// and the hit ratio is that of the undivided algorithm (docs/adr/0018).
///
/// The store keeps at most 16 variants of a key, and evicts all variants of a key together. Safe from any
/// thread.
package final class MemoryStore: CacheStore {
  /// The amount of memory that a store uses.
  package struct Usage: Hashable, Sendable {
    /// The bytes in use, including `overhead`.
    package var bytes: Int
    /// The part of `bytes` that tables and gaps in the heap take.
    package var overhead = 0
    /// The number of keys.
    package var keys: Int
  }

  /// The maximum number of variants of a key. The limit keeps a server whose responses vary by a value that
  /// never repeats from pushing out all other entries.
  private static let mostVariants = 16
  private static let shardCount = 16

  /// The limits of the store.
  package let limits: CacheLimits
  private let shards: [MemoryShard]
  private let queues: Locked<Queues>
  private let heap: (any ProcessHeap)?
  private let clock = SystemTimeSource()
  private let now: @Sendable () -> Int64

  private struct Queues: Sendable {
    var fifo: S3FIFO<MemorySlot>
    /// The estimate of freed memory that the allocator still holds. `nil` in a store without a heap, which
    /// cannot return that memory.
    var heap: HeapUse?
    /// The size of a heap page, in bytes; 0 without a heap.
    let page: Int
    /// The bytes that the tables of the shards take.
    var tableBytes = 0
    /// The bytes used in addition to entries and queues: tables and gaps. Blocks that stay keep only the
    /// pages at their two ends resident, so gaps count for at most two pages per key.
    var overhead: Int { tableBytes + min(heap?.gaps ?? 0, 2 * fifo.count * page) }
    /// The time of the next sweep for entries older than `maxAge`, in milliseconds since 1970, and below it
    /// the index of the shard swept last.
    var nextSweep = Int64.min
    var sweptShard = 0
  }

  /// Makes an empty store.
  ///
  /// - Parameters:
  ///   - limits: the limits of the store; 64 MiB by default.
  ///   - heap: returns freed memory to the system when the sizes of entries change; `nil` leaves that to the
  ///     program.
  ///   - now: returns the date in milliseconds since 1970, for `maxAge`.
  package init(
    _ limits: CacheLimits = .memory, heap: (any ProcessHeap)? = nil,
    now: @escaping @Sendable () -> Int64 = WallClock.now
  ) {
    self.limits = limits
    self.heap = heap
    self.now = now
    shards = (0..<Self.shardCount).map { _ in MemoryShard() }
    queues = Locked(Self.emptyQueues(limits, heap))
  }

  private static func emptyQueues(_ limits: CacheLimits, _ heap: (any ProcessHeap)?) -> Queues {
    let bytes = max(limits.maxBytes, 0)
    return Queues(
      fifo: S3FIFO(capacity: bytes, maxCount: max(limits.maxEntries ?? .max, 0), countsTables: true),
      heap: heap.map { _ in HeapUse(maxIdle: max(bytes / 64, 1 << 20), maxGaps: bytes / 4 * 3) },
      page: heap?.page ?? 0)
  }

  /// The current usage.
  package var usage: Usage {
    queues.withLock { queues in
      let fifo = queues.fifo
      return Usage(bytes: fifo.used, overhead: fifo.used - fifo.bytes, keys: fifo.count)
    }
  }

  /// The maximum size of an entry, in bytes: a tenth of `maxBytes`.
  package var mostBytesOfEntry: Int { max(limits.maxBytes, 0) / 10 }

  private func shard(of key: CacheKey) -> MemoryShard {
    shards[Int(truncatingIfNeeded: key.tableHash >> 32) & (Self.shardCount - 1)]
  }

  /// The entries of a key, without entries older than `maxAge`.
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

  /// Inserts an entry and removes the entries that it overlaps. The store rejects an entry larger than a
  /// tenth of `maxBytes`, but still removes the entries that it overlaps. It also removes entries of the key
  /// with a `received` date after the present, which occur when the clock was set back: they would count as
  /// the newest.
  package func insert(_ entry: CacheEntry) {
    change(entry.key) { old in
      let others = old.filter { !entry.overlaps($0.selectors) && $0.received <= now() }
      guard MemorySlot.weight(of: [entry]) <= mostBytesOfEntry else { return others }
      // Reserves no more room than these entries need.
      var entries: [CacheEntry] = []
      entries.reserveCapacity(min(others.count + 1, Self.mostVariants))
      entries.append(entry)
      entries.append(contentsOf: others.prefix(Self.mostVariants - 1))
      while MemorySlot.weight(of: entries) > mostBytesOfEntry { entries.removeLast() }
      return entries
    }
  }

  /// Removes the entry and all overlapping entries that are not newer.
  package func remove(_ entry: CacheEntry) {
    change(entry.key) { old in
      old.filter { !entry.overlaps($0.selectors) || $0.received > entry.received }
    }
  }

  /// Removes the entries of a key that match the predicate. The key's change count grows even when no entry
  /// matches, so that `promote` rejects entries that are being read from another tier.
  package func remove(_ key: CacheKey, where predicate: (CacheEntry) -> Bool) {
    change(key) { entries in entries.filter { !predicate($0) } }
  }

  /// Removes all entries of a key.
  package func removeAll(for key: CacheKey) { change(key) { _ in [] } }

  /// Removes all entries, and clears the ghost queue.
  package func removeAll() {
    queues.withLock { queues in
      for shard in shards {
        shard.table.withLock { table in
          table.removeAll()
          table.changes += 1
        }
      }
      queues = Self.emptyQueues(limits, heap)
    }
    _ = heap?.trim()
  }

  // MARK: Promotion from another tier

  /// A change counter for a key. It changes with every insertion and removal of this key, and of other keys
  /// in the same shard.
  package func changeCount(of key: CacheKey) -> UInt64 { shard(of: key).table.withLock { $0.changes } }

  /// Inserts entries of a key from another tier, unless the change count differs from the given one. The
  /// check keeps entries that were removed meanwhile from coming back.
  package func promote(_ entries: [CacheEntry], for key: CacheKey, since changeCount: UInt64) {
    change(key, since: changeCount) { old in
      guard old.isEmpty else { return old }
      var kept = Array(entries.prefix(Self.mostVariants))
      while !kept.isEmpty, MemorySlot.weight(of: kept) > mostBytesOfEntry { kept.removeLast() }
      return kept
    }
  }

  // MARK: Changes

  /// Replaces the entries of a key with the result of the closure. It locks the queues first, and the shards
  /// inside, one at a time.
  private func change(
    _ key: CacheKey, since changeCount: UInt64? = nil, _ update: ([CacheEntry]) -> [CacheEntry]
  ) {
    let shard = shard(of: key)
    let isDue = queues.withLock { queues -> Bool in
      let change = shard.table.withLock { table -> Change? in
        if let changeCount, table.changes != changeCount { return nil }
        table.changes += 1
        let slot = table.slot(of: key)
        let old = slot?.entries ?? []
        let new = update(old)
        let before = table.bytes
        slot?.replace(new)
        if let slot, new.isEmpty { table.remove(slot) }
        return Change(slot: slot, old: old, new: new, tableBytes: table.bytes - before)
      }
      guard let change else { return false }
      apply(change, to: key, in: shard, &queues)
      sweep(&queues)
      enforceCapacity(&queues)
      return queues.heap?.isDue { clock.now() } ?? false
    }
    guard isDue, let heap else { return }
    // Runs outside the locks, so that other callers of the store do not wait.
    let begun = clock.now()
    let result = heap.trim()
    let ended = clock.now()
    queues.withLock { queues in
      queues.heap?.recordTrim(result, from: begun, to: ended)
      enforceCapacity(&queues)
    }
  }

  private struct Change {
    var slot: MemorySlot?
    var old: [CacheEntry]
    var new: [CacheEntry]
    var tableBytes: Int
  }

  private func apply(_ change: Change, to key: CacheKey, in shard: MemoryShard, _ queues: inout Queues) {
    queues.tableBytes += change.tableBytes
    queues.heap?.replace(change.old, with: change.new)
    // New entries fill gaps first. The overhead shrinks accordingly before the queues evict anything.
    queues.fifo.overhead = queues.overhead
    guard let slot = change.slot else {
      if !change.new.isEmpty { add(MemorySlot(key, change.new), to: shard, &queues) }
      return
    }
    if change.new.isEmpty {
      queues.fifo.remove(slot.queueIndex)
    } else {
      evicting(&queues) { fifo, drop in
        fifo.resize(slot.queueIndex, to: slot.weight, visits: { $0.takeVisits() }, evicted: drop)
      }
    }
  }

  private func add(_ slot: MemorySlot, to shard: MemoryShard, _ queues: inout Queues) {
    let index = evicting(&queues) { fifo, drop in
      fifo.insert(
        slot, fingerprint: slot.key.tableHash, size: slot.weight, visits: { $0.takeVisits() }, evicted: drop)
    }
    guard let index else {
      queues.heap?.remove(slot.entries)
      return
    }
    slot.queueIndex = index
    queues.tableBytes += shard.table.withLock { table in
      let before = table.bytes
      table.add(slot)
      return table.bytes - before
    }
  }

  /// Runs work on the queues that may evict slots, and removes evicted slots from their tables and from
  /// `heap`.
  private func evicting<Result>(
    _ queues: inout Queues, _ work: (inout S3FIFO<MemorySlot>, (MemorySlot) -> Void) -> Result
  ) -> Result {
    var tableBytes = 0
    // A copy: the closure must not access `queues` while `work` changes `queues.fifo`.
    var heap = queues.heap
    defer {
      queues.heap = heap
      queues.tableBytes += tableBytes
    }
    return work(&queues.fifo) { slot in
      tableBytes += drop(slot)
      heap?.remove(slot.entries)
    }
  }

  /// Removes a slot from its table.
  ///
  /// - Returns: the growth of the table, in bytes; negative when the table shrank.
  private func drop(_ slot: MemorySlot) -> Int {
    shard(of: slot.key).table.withLock { table in
      let before = table.bytes
      table.remove(slot)
      return table.bytes - before
    }
  }

  /// Evicts entries when grown tables and gaps exceed the capacity, and shrinks the queues' table when it is
  /// sparse.
  private func enforceCapacity(_ queues: inout Queues) {
    queues.fifo.overhead = queues.overhead
    if queues.fifo.used > queues.fifo.capacity {
      evicting(&queues) { fifo, drop in fifo.makeRoom(visits: { $0.takeVisits() }, evicted: drop) }
      queues.fifo.overhead = queues.overhead
    }
    if queues.fifo.isSparse { queues.fifo.compact { $0.queueIndex = $1 } }
  }

  /// Removes the slots of one shard whose entries are all older than `maxAge`, if a sweep is due. The sweep
  /// reaches each shard four times per `maxAge`.
  private func sweep(_ queues: inout Queues) {
    guard let maxAge = limits.maxAgeMilliseconds else { return }
    let now = now()
    guard now >= queues.nextSweep else { return }
    queues.nextSweep = now + maxAge / Int64(4 * Self.shardCount)
    queues.sweptShard = (queues.sweptShard + 1) % Self.shardCount
    let (old, tableBytes) = shards[queues.sweptShard].table.withLock { table -> ([MemorySlot], Int) in
      var old: [MemorySlot] = []
      for first in table.slots.values {
        var slot: MemorySlot? = first
        while let each = slot {
          if each.entries.allSatisfy({ $0.received < now - maxAge }) { old.append(each) }
          slot = each.next
        }
      }
      let before = table.bytes
      for slot in old { table.remove(slot) }
      return (old, table.bytes - before)
    }
    queues.tableBytes += tableBytes
    for slot in old {
      queues.fifo.remove(slot.queueIndex)
      queues.heap?.remove(slot.entries)
    }
  }
}
