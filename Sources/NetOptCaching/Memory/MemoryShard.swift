import NetOptLocking

/// A part of a memory store's table, behind a lock of its own.
final class MemoryShard: Sendable {
  struct Table: Sendable {
    /// By the keys' places. Keys with the same place form a chain.
    var slots: [UInt64: MemorySlot] = [:]
    /// Counts what was put in and taken out.
    var changes: UInt64 = 0

    func slot(of key: CacheKey) -> MemorySlot? {
      var slot = slots[key.place]
      while let candidate = slot, candidate.key != key { slot = candidate.next }
      return slot
    }

    mutating func add(_ slot: MemorySlot) {
      slot.next = slots.updateValue(slot, forKey: slot.key.place)
    }

    mutating func remove(_ slot: MemorySlot) {
      guard let first = slots[slot.key.place] else { return }
      if first === slot {
        slots[slot.key.place] = slot.next
      } else {
        var before = first
        while let next = before.next, next !== slot { before = next }
        before.next = slot.next
      }
      slot.next = nil
    }
  }

  let table = Locked(Table())
}
