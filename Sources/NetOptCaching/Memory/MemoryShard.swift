import NetOptLocking

/// A part of the table of a memory store, with its own lock.
final class MemoryShard: Sendable {
  struct Table: Sendable {
    /// The capacity up to which a table is never shrunk.
    private static let least = 3

    /// The slots by the hashes of their keys. Keys with the same hash form a chain.
    private(set) var slots: [UInt64: MemorySlot] = [:]
    /// Counts insertions and removals.
    var changes: UInt64 = 0

    /// The bytes that the table takes, without the slots.
    var bytes: Int { TableSize.bytes(of: slots) }

    func slot(of key: CacheKey) -> MemorySlot? {
      var slot = slots[key.tableHash]
      while let candidate = slot, candidate.key != key { slot = candidate.next }
      return slot
    }

    mutating func add(_ slot: MemorySlot) {
      slot.next = slots.updateValue(slot, forKey: slot.key.tableHash)
    }

    mutating func remove(_ slot: MemorySlot) {
      guard let first = slots[slot.key.tableHash] else { return }
      if first === slot {
        slots[slot.key.tableHash] = slot.next
        shrink()
      } else {
        var before = first
        while let next = before.next, next !== slot { before = next }
        before.next = slot.next
      }
      slot.next = nil
    }

    mutating func removeAll() { slots = [:] }

    /// Replaces the dictionary when it is sparse: a dictionary keeps the room of the most elements it ever
    /// had.
    private mutating func shrink() {
      guard TableSize.isSparse(slots, least: Self.least) else { return }
      var rest = [UInt64: MemorySlot](minimumCapacity: 2 * slots.count)
      for (hash, slot) in slots { rest[hash] = slot }
      slots = rest
    }
  }

  let table = Locked(Table())
}
