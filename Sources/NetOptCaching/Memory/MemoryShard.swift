import NetOptLocking

/// One of the parts into which a memory store divides its keys. Each part has its own table and lock, so that
/// hits for different keys rarely wait for each other.
final class MemoryShard: Sendable {
  /// The slots of the keys in this shard.
  struct Table: Sendable {
    /// A dictionary with at most this capacity, in elements, is not shrunk.
    private static let least = 3

    /// The slots by `CacheKey.tableHash`. The slots of keys with the same hash form a chain
    /// (`MemorySlot.next`); the dictionary has the first of them.
    private(set) var slots: [UInt64: MemorySlot] = [:]
    /// A number that grows with each call that inserts or removes entries in this shard, also when the call
    /// finds nothing to change (`MemoryStore.changeCount`). Evictions do not change it.
    var changes: UInt64 = 0

    /// The memory that the dictionary takes in bytes, without the slots.
    var bytes: Int { TableSize.bytes(of: slots) }

    /// The slots of all keys.
    var allSlots: [MemorySlot] {
      var all: [MemorySlot] = []
      for first in slots.values {
        var slot: MemorySlot? = first
        while let each = slot {
          all.append(each)
          slot = each.next
        }
      }
      return all
    }

    /// The slot of a key; `nil` when the key has no entries.
    func slot(of key: CacheKey) -> MemorySlot? {
      var slot = slots[key.tableHash]
      while let candidate = slot, candidate.key != key { slot = candidate.next }
      return slot
    }

    /// Adds a slot, at the beginning of the chain of its hash.
    mutating func add(_ slot: MemorySlot) {
      slot.next = slots.updateValue(slot, forKey: slot.key.tableHash)
    }

    /// Removes a slot, which must be in the table.
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

    /// Replaces the dictionary by a smaller one when it is sparse. A Swift dictionary never gives back memory
    /// when elements are removed.
    private mutating func shrink() {
      guard TableSize.isSparse(slots, least: Self.least) else { return }
      var rest = [UInt64: MemorySlot](minimumCapacity: 2 * slots.count)
      for (hash, slot) in slots { rest[hash] = slot }
      slots = rest
    }
  }

  /// The table, under the lock of the shard.
  let table = Locked(Table())
}
