import NetOptCore
import NetOptLocking

/// The memory tier of the cache. It limits the memory of its entries, and evicts entries with `S3FIFO`, which
/// keeps frequently and recently requested ones.
///
/// The keys are divided into shards, each with its own lock. A hit takes the lock of one shard, counts a
/// visit and returns the array of entries, without allocation or copy. It does not wait for changes in other
/// shards.
///
/// All shards share one set of queues with its own lock. This does not slow hits, because S3-FIFO changes its
/// queues only on a miss. The capacity is not split between shards, so the hit ratio is that of one undivided
/// cache (docs/adr/0018).
///
/// A key has at most 16 variants: entries for different values of the fields in `Vary`. The store evicts all
/// variants of a key together. Safe from any thread.
package final class MemoryStore: CacheStore {
  /// The amount of memory that a store uses.
  package struct Usage: Hashable, Sendable {
    /// The memory in use, in bytes, including `overhead`.
    package var bytes: Int
    /// The part of `bytes` that the tables and the gaps in the heap take.
    package var overhead = 0
    /// The number of keys with entries.
    package var keys: Int
    /// The number of entries: a key has one for each variant.
    package var entries = 0
  }

  /// The maximum number of variants of a key. Without a limit, a server whose responses vary by a value that
  /// never repeats could displace all other entries.
  private static let mostVariants = 16
  /// The number of shards, a power of two.
  private static let shardCount = 16

  /// The limits of the store.
  package let limits: CacheLimits
  /// The tables of the keys. The hash of a key selects its shard.
  private let shards: [MemoryShard]
  /// The state that all shards share, with its lock. A change takes this lock first, and then the lock of a
  /// shard.
  private let queues: Locked<Queues>
  /// The heap to which the store returns freed memory; `nil` for a store that returns none.
  private let heap: (any ProcessHeap)?
  /// The monotonic clock, for the duration of calls to `heap`.
  private let clock = SystemTimeSource()
  /// Returns the date of the system clock in milliseconds since 1970.
  private let now: @Sendable () -> Int64

  /// The state that all shards share.
  private struct Queues: Sendable {
    /// The queues of S3-FIFO, with the slots of all keys.
    var fifo: S3FIFO<MemorySlot>
    /// The estimate of freed memory that the allocator still keeps resident; `nil` in a store without a heap.
    var heap: HeapUse?
    /// The size of a memory page, in bytes; 0 in a store without a heap.
    let page: Int
    /// The memory that the tables of all shards take, in bytes.
    var tableBytes = 0
    /// The memory of the tables of the shards and of the gaps in the heap, in bytes. A block of the store can
    /// keep at most the two pages at its ends resident, so the gaps count for at most two pages per key.
    var overhead: Int { tableBytes + min(heap?.gaps ?? 0, 2 * fifo.count * page) }
    /// The number of entries.
    var entries = 0
    /// The number of entries that were evicted since the store was made, or refused by `fifo`.
    var evicted = 0
    /// When the next sweep for entries older than `maxAge` is due, in milliseconds since 1970.
    var nextSweep = Int64.min
    /// The index of the shard of the last sweep.
    var sweptShard = 0
  }

  /// Makes an empty store.
  ///
  /// - Parameters:
  ///   - limits: the limits of the store; 64 MiB by default.
  ///   - heap: the heap of the process. The store asks it to return freed memory to the system when too much
  ///     memory is idle (`HeapUse`). `nil` for a store that returns no memory.
  ///   - now: returns the date of the system clock in milliseconds since 1970, for `maxAge`.
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

  /// The state of a store without entries.
  private static func emptyQueues(_ limits: CacheLimits, _ heap: (any ProcessHeap)?) -> Queues {
    let bytes = max(limits.maxBytes, 0)
    return Queues(
      fifo: S3FIFO(capacity: bytes, maxCount: max(limits.maxEntries ?? .max, 0), countsTables: true),
      heap: heap.map { _ in HeapUse(maxIdle: max(bytes / 64, 1 << 20), maxGaps: bytes / 4 * 3) },
      page: heap?.page ?? 0)
  }

  /// The memory that the store uses now.
  package var usage: Usage {
    queues.withLock { queues in
      let fifo = queues.fifo
      return Usage(
        bytes: fifo.used, overhead: fifo.used - fifo.bytes, keys: fifo.count, entries: queues.entries)
    }
  }

  /// The number of entries that were evicted since the store was made, for space or for age, and of new entries
  /// that the queues refused.
  package var evicted: Int { queues.withLock(\.evicted) }

  /// The maximum size of the slot of a key with all its entries, in bytes: a tenth of `maxBytes`.
  package var mostBytesOfEntry: Int { max(limits.maxBytes, 0) / 10 }

  /// The shard that the upper bits of the key's hash select.
  private func shard(of key: CacheKey) -> MemoryShard {
    shards[Int(truncatingIfNeeded: key.tableHash >> 32) & (Self.shardCount - 1)]
  }

  /// The entries of a key, newest first, without entries older than `maxAge`. The call counts as a visit.
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

  /// Inserts an entry and removes the entries that it overlaps (`CacheEntry.overlaps`). The store rejects an
  /// entry larger than a tenth of `maxBytes`, but still removes the entries that it overlaps.
  ///
  /// The method also removes entries of the key that were received after the present. Such entries exist
  /// after the system clock was set back, and they would count as the newest.
  package func insert(_ entry: CacheEntry) {
    change(entry.key) { old in
      let others = old.filter { !entry.overlaps($0.selectors) && $0.received <= now() }
      guard MemorySlot.weight(of: [entry]) <= mostBytesOfEntry else { return others }
      // Reserves exactly the room for these entries, because the capacity of the array counts as memory.
      var entries: [CacheEntry] = []
      entries.reserveCapacity(min(others.count + 1, Self.mostVariants))
      entries.append(entry)
      entries.append(contentsOf: others.prefix(Self.mostVariants - 1))
      while MemorySlot.weight(of: entries) > mostBytesOfEntry { entries.removeLast() }
      return entries
    }
  }

  /// Removes the stored entries that this entry overlaps, except those that were received later than this
  /// entry.
  package func remove(_ entry: CacheEntry) {
    change(entry.key) { old in
      old.filter { !entry.overlaps($0.selectors) || $0.received > entry.received }
    }
  }

  /// Removes the entries of a key that match the predicate. The key's change count grows even when no entry
  /// matches. So `promote` rejects entries that another thread is reading from the disk at this time.
  package func remove(_ key: CacheKey, where predicate: (CacheEntry) -> Bool) {
    change(key) { entries in entries.filter { !predicate($0) } }
  }

  /// Removes all entries of a key.
  package func removeAll(for key: CacheKey) { change(key) { _ in [] } }

  /// Removes all entries, and the fingerprints in the ghost queue.
  package func removeAll() {
    queues.withLock { queues in
      for shard in shards {
        shard.table.withLock { table in
          table.removeAll()
          table.changes += 1
        }
      }
      let evicted = queues.evicted
      queues = Self.emptyQueues(limits, heap)
      queues.evicted = evicted
    }
    _ = heap?.trim()
  }

  /// Removes the entries that match the predicate, of all keys. The change counts of all keys grow, so
  /// `promote` rejects all entries that were read from the disk before. Searches one shard at a time, under
  /// the lock of the queues and that of the shard, in this order. Without the lock of the queues, the search
  /// would miss a slot that `change` has made and has not added to the table yet. The predicate runs under
  /// both locks.
  package func remove(where predicate: (CacheEntry) -> Bool) {
    for shard in shards {
      let keys = queues.withLock { _ in
        shard.table.withLock { table -> [CacheKey] in
          table.changes += 1
          return table.allSlots.filter { $0.entries.contains(where: predicate) }.map(\.key)
        }
      }
      for key in keys { remove(key, where: predicate) }
    }
  }

  // MARK: Promotion from another tier

  /// A number that grows with each insertion and removal of entries of this key, and of other keys in the
  /// same shard.
  package func changeCount(of key: CacheKey) -> UInt64 { shard(of: key).table.withLock { $0.changes } }

  /// Inserts entries that were read from the disk tier, unless the store already has entries of the key.
  ///
  /// - Parameter changeCount: the change count of the key before the entries were read. If the count is
  ///   different now, the method inserts nothing, because the entries may have been removed or replaced in
  ///   the meantime.
  package func promote(_ entries: [CacheEntry], for key: CacheKey, since changeCount: UInt64) {
    change(key, since: changeCount) { old in
      guard old.isEmpty else { return old }
      var kept = Array(entries.prefix(Self.mostVariants))
      while !kept.isEmpty, MemorySlot.weight(of: kept) > mostBytesOfEntry { kept.removeLast() }
      return kept
    }
  }

  // MARK: Changes

  /// Replaces the entries of a key by the result of `update`, evicts entries until there is room, and returns
  /// freed memory if that is due. It takes the lock of the queues, and under it the lock of one shard at a
  /// time.
  ///
  /// - Parameters:
  ///   - changeCount: the call has no effect if the change count of the key differs from this one.
  ///   - update: receives the current entries and returns the new ones. It runs under both locks.
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
    // Returns memory without the locks, so that other callers of the store do not wait.
    let begun = clock.now()
    let result = heap.trim()
    let ended = clock.now()
    queues.withLock { queues in
      queues.heap?.recordTrim(result, from: begun, to: ended)
      enforceCapacity(&queues)
    }
  }

  /// A change of the entries of a key in its shard. The queues do not know it yet.
  private struct Change {
    /// The slot of the key before the change; `nil` when the key had no entries.
    var slot: MemorySlot?
    /// The entries before the change.
    var old: [CacheEntry]
    /// The entries after the change.
    var new: [CacheEntry]
    /// The growth of the shard's table in bytes, which may be negative.
    var tableBytes: Int
  }

  /// Applies a change to the queues. It evicts other slots to make room.
  private func apply(_ change: Change, to key: CacheKey, in shard: MemoryShard, _ queues: inout Queues) {
    queues.tableBytes += change.tableBytes
    queues.heap?.replace(change.old, with: change.new)
    queues.entries += change.new.count - change.old.count
    // Updates the overhead before the queues evict anything, because the new entries may fill gaps.
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

  /// Adds a new slot to the queues and to its shard, unless the queues reject it.
  private func add(_ slot: MemorySlot, to shard: MemoryShard, _ queues: inout Queues) {
    let index = evicting(&queues) { fifo, drop in
      fifo.insert(
        slot, fingerprint: slot.key.tableHash, size: slot.weight, visits: { $0.takeVisits() }, evicted: drop)
    }
    guard let index else {
      queues.heap?.remove(slot.entries)
      queues.entries -= slot.entries.count
      queues.evicted += slot.entries.count
      return
    }
    slot.queueIndex = index
    queues.tableBytes += shard.table.withLock { table in
      let before = table.bytes
      table.add(slot)
      return table.bytes - before
    }
  }

  /// Runs work on the queues that may evict slots. Removes each evicted slot from its shard, and subtracts
  /// its bytes from `Queues.heap`.
  ///
  /// - Parameter work: receives the queues, and a closure that it must call with each evicted slot.
  private func evicting<Result>(
    _ queues: inout Queues, _ work: (inout S3FIFO<MemorySlot>, (MemorySlot) -> Void) -> Result
  ) -> Result {
    var tableBytes = 0
    var evicted = 0
    // The closure below changes a copy, because it must not access `queues` while `work` changes
    // `queues.fifo`.
    var heap = queues.heap
    defer {
      queues.heap = heap
      queues.tableBytes += tableBytes
      queues.entries -= evicted
      queues.evicted += evicted
    }
    return work(&queues.fifo) { slot in
      tableBytes += drop(slot)
      evicted += slot.entries.count
      heap?.remove(slot.entries)
    }
  }

  /// Removes an evicted slot from the table of its shard.
  ///
  /// - Returns: the growth of the table, in bytes; negative when the table shrank.
  private func drop(_ slot: MemorySlot) -> Int {
    shard(of: slot.key).table.withLock { table in
      let before = table.bytes
      table.remove(slot)
      return table.bytes - before
    }
  }

  /// Evicts entries until the memory in use, with tables and gaps, fits the capacity. Also shrinks the table
  /// of the queues when it is sparse.
  private func enforceCapacity(_ queues: inout Queues) {
    queues.fifo.overhead = queues.overhead
    if queues.fifo.used > queues.fifo.capacity {
      evicting(&queues) { fifo, drop in fifo.makeRoom(visits: { $0.takeVisits() }, evicted: drop) }
      queues.fifo.overhead = queues.overhead
    }
    if queues.fifo.isSparse { queues.fifo.compact { $0.queueIndex = $1 } }
  }

  /// If a sweep is due, removes the slots of the next shard whose entries are all older than `maxAge`. While
  /// the store changes, each shard gets four sweeps per `maxAge`.
  private func sweep(_ queues: inout Queues) {
    guard let maxAge = limits.maxAgeMilliseconds else { return }
    let now = now()
    guard now >= queues.nextSweep else { return }
    queues.nextSweep = now + maxAge / Int64(4 * Self.shardCount)
    queues.sweptShard = (queues.sweptShard + 1) % Self.shardCount
    let (old, tableBytes) = shards[queues.sweptShard].table.withLock { table -> ([MemorySlot], Int) in
      var old: [MemorySlot] = []
      for slot in table.allSlots where slot.entries.allSatisfy({ $0.received < now - maxAge }) {
        old.append(slot)
      }
      let before = table.bytes
      for slot in old { table.remove(slot) }
      return (old, table.bytes - before)
    }
    queues.tableBytes += tableBytes
    for slot in old {
      queues.fifo.remove(slot.queueIndex)
      queues.heap?.remove(slot.entries)
      queues.entries -= slot.entries.count
      queues.evicted += slot.entries.count
    }
  }
}
