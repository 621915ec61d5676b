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
    /// What the tables, and gaps in memory, take of them.
    package var overhead = 0
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
  private let heap: (any ProcessHeap)?
  private let clock = SystemTimeSource()
  private let now: @Sendable () -> Int64

  private struct Queues: Sendable {
    var fifo: S3FIFO<MemorySlot>
    /// What the allocator keeps; `nil` in a store without a heap, which could do nothing about it.
    var heap: HeapUse?
    /// The bytes of a page of the heap.
    let page: Int
    /// What the shards' tables take.
    var tableBytes = 0
    /// What is used beside entries and queues. What stays keeps the pages at its two ends, and no more than that.
    var overhead: Int { tableBytes + min(heap?.gaps ?? 0, 2 * fifo.count * page) }
    /// When the next shard is looked through for what is too old, and which one.
    var nextSweep = Int64.min
    var sweptShard = 0
  }

  /// Makes an empty store.
  ///
  /// - Parameters:
  ///   - limits: what it keeps; 64 MiB by default.
  ///   - heap: gives freed memory back when the sizes of entries change; `nil` leaves that to the program.
  ///   - now: the date in milliseconds since 1970, for `maxAge`.
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
      heap: heap.map { _ in HeapUse(most: max(bytes / 64, 1 << 20), mostGaps: bytes / 4 * 3) },
      page: heap?.page ?? 0)
  }

  /// What the store holds now.
  package var usage: Usage {
    queues.withLock { queues in
      let fifo = queues.fifo
      return Usage(bytes: fifo.used, overhead: fifo.used - fifo.bytes, keys: fifo.count)
    }
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

  /// Keeps an entry in the place of those that it overlaps. One that is larger than a tenth of `maxBytes` is
  /// not kept, and the one in its place is forgotten. So are entries with a date after the present, which the clock had before it was set back:
  /// they would be taken for the latest.
  package func insert(_ entry: CacheEntry) {
    change(entry.key) { old in
      let others = old.filter { !entry.overlaps($0.selectors) && $0.received <= now() }
      guard MemorySlot.weight(of: [entry]) <= mostBytesOfEntry else { return others }
      // With room for these and no more.
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

  /// Forgets entries of a key. The key's mark changes even when there are none, so that an entry which is being read from another tier is not
  /// promoted.
  package func remove(_ key: CacheKey, where isMeant: (CacheEntry) -> Bool) {
    change(key) { entries in entries.filter { !isMeant($0) } }
  }

  /// Forgets all entries of a key.
  package func removeAll(for key: CacheKey) { change(key) { _ in [] } }

  /// Forgets everything, what was evicted lately included.
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
    _ = heap?.giveBack()
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
    let isDue = queues.withLock { queues -> Bool in
      let change = shard.table.withLock { table -> Change? in
        if let mark, table.changes != mark { return nil }
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
      settle(&queues)
      return queues.heap?.isDue { clock.now() } ?? false
    }
    guard isDue, let heap else { return }
    // Beside the locks: whoever uses the store does not wait for it.
    let begun = clock.now()
    let result = heap.giveBack()
    let ended = clock.now()
    queues.withLock { queues in
      queues.heap?.gaveBack(result, from: begun, to: ended)
      settle(&queues)
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
    // What comes fills gaps before others have to go for it.
    queues.fifo.overhead = queues.overhead
    guard let slot = change.slot else {
      if !change.new.isEmpty { add(MemorySlot(key, change.new), to: shard, &queues) }
      return
    }
    if change.new.isEmpty {
      queues.fifo.remove(slot.place)
    } else {
      evicting(&queues) { fifo, drop in
        fifo.resize(slot.place, to: slot.weight, visits: { $0.takeVisits() }, evicted: drop)
      }
    }
  }

  private func add(_ slot: MemorySlot, to shard: MemoryShard, _ queues: inout Queues) {
    let place = evicting(&queues) { fifo, drop in
      fifo.insert(
        slot, fingerprint: slot.key.place, size: slot.weight, visits: { $0.takeVisits() }, evicted: drop)
    }
    guard let place else {
      queues.heap?.remove(slot.entries)
      return
    }
    slot.place = place
    queues.tableBytes += shard.table.withLock { table in
      let before = table.bytes
      table.add(slot)
      return table.bytes - before
    }
  }

  /// Does something with the queues that may evict, and takes note of what is evicted.
  private func evicting<Result>(
    _ queues: inout Queues, _ work: (inout S3FIFO<MemorySlot>, (MemorySlot) -> Void) -> Result
  ) -> Result {
    var tableBytes = 0
    // The closure cannot have a part of what is worked on.
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

  /// Takes a slot out of its table.
  ///
  /// - Returns: by how much the table has grown.
  private func drop(_ slot: MemorySlot) -> Int {
    shard(of: slot.key).table.withLock { table in
      let before = table.bytes
      table.remove(slot)
      return table.bytes - before
    }
  }

  /// Has tables that have grown, and gaps, take their part of the room, and those that have become too large made anew.
  private func settle(_ queues: inout Queues) {
    queues.fifo.overhead = queues.overhead
    if queues.fifo.used > queues.fifo.capacity {
      evicting(&queues) { fifo, drop in fifo.makeRoom(visits: { $0.takeVisits() }, evicted: drop) }
      queues.fifo.overhead = queues.overhead
    }
    if queues.fifo.isSparse { queues.fifo.compact { $0.place = $1 } }
  }

  /// Looks through one shard, when it is time, for what is too old: each has its turn four times in `maxAge`.
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
      queues.fifo.remove(slot.place)
      queues.heap?.remove(slot.entries)
    }
  }
}
