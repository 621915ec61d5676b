import CHeap
import NetOptCore
import Synchronization
import Testing

@testable import NetOptCaching

struct MemoryStoreTests {
  @Test("a look-up returns the inserted object, and nothing for another key")
  func sharedEntry() throws {
    let store = MemoryStore()
    let key = try Samples.key("a")
    let entry = Samples.entry(key)
    store.insert(entry)
    let found = store.entries(for: try Samples.key("a"))
    #expect(found.count == 1)
    #expect(found.first === entry)
    #expect(store.entries(for: try Samples.key("b")).isEmpty)
  }

  @Test("a hit does not copy the body")
  func sharedBody() throws {
    let store = MemoryStore()
    let key = try Samples.key("a")
    let body = [UInt8](repeating: 7, count: 1 << 20)
    store.insert(Samples.entry(key, body: body))
    let found = try #require(store.entries(for: key).first)
    let same = body.withUnsafeBytes { ours in
      found.body.withUnsafeBytes { theirs in ours.baseAddress == theirs.baseAddress }
    }
    #expect(same)
  }

  @Test("a key has one entry for each set of selectors, newest first")
  func variants() throws {
    let store = MemoryStore()
    let key = try Samples.key("a")
    let german = Samples.entry(key, selectors: [.init(name: "accept-language", value: "de")], received: 1)
    let french = Samples.entry(key, selectors: [.init(name: "accept-language", value: "fr")], received: 2)
    store.insert(german)
    store.insert(french)
    #expect(store.entries(for: key).map(\.received) == [2, 1])
    let newer = Samples.entry(key, selectors: german.selectors, received: 3)
    store.insert(newer)
    #expect(store.entries(for: key).map(\.received) == [3, 2])
    // `newer` has replaced `german`. The removal of `german` keeps `newer`, which was received later.
    store.remove(german)
    #expect(store.entries(for: key).map(\.received) == [3, 2])
    store.remove(newer)
    #expect(store.entries(for: key).map(\.received) == [2])
    store.removeAll(for: key)
    #expect(store.entries(for: key).isEmpty)
    #expect(store.usage.keys == 0)
  }

  @Test("a key keeps its 16 latest variants")
  func mostVariants() throws {
    let store = MemoryStore()
    let key = try Samples.key("a")
    for number in 0..<100 {
      let selectors = [CacheEntry.Selector(name: "user-agent", value: "\(number)")]
      store.insert(Samples.entry(key, selectors: selectors, received: Int64(number)))
    }
    #expect(store.entries(for: key).map(\.received) == Array((84..<100).reversed()))
  }

  @Test("partitions do not share entries")
  func partitions() throws {
    let store = MemoryStore()
    let mine = try Samples.key("a", partition: "me")
    let yours = try Samples.key("a", partition: "you")
    #expect(mine.digest == yours.digest)
    store.insert(Samples.entry(mine))
    #expect(store.entries(for: yours).isEmpty)
    store.insert(Samples.entry(yours, body: [1]))
    store.removeAll(for: yours)
    #expect(store.entries(for: mine).count == 1)
  }

  @Test("keys with the same digest do not share entries")
  func collision() throws {
    let (one, other) = try Samples.collision()
    #expect(one.digest == other.digest && one != other)
    #expect(one.digest.bytes.prefix(4) == [0x79, 0x05, 0x40, 0x25])
    let store = MemoryStore()
    store.insert(Samples.entry(one))
    #expect(store.entries(for: other).isEmpty)
    store.insert(Samples.entry(other, body: [2]))
    #expect(store.entries(for: one).first?.body == Array("hello".utf8))
    store.removeAll(for: one)
    #expect(store.entries(for: other).first?.body == [2])
    store.removeAll(for: other)
    #expect(store.usage.keys == 0)
  }

  @Test("an entry that is too large is not stored and removes the old entry")
  func tooLarge() throws {
    let store = MemoryStore(CacheLimits(maxBytes: 100_000))
    let key = try Samples.key("a")
    store.insert(Samples.entry(key))
    store.insert(Samples.entry(key, body: [UInt8](repeating: 0, count: 20_000)))
    #expect(store.entries(for: key).isEmpty)
    #expect(store.usage.keys == 0)
  }

  @Test("entries older than maxAge are not found, and insertions remove them step by step")
  func tooOld() throws {
    let date = StoppedDate()
    let limits = CacheLimits(maxBytes: 1 << 20, maxAge: .seconds(60))
    let store = MemoryStore(limits, now: { date.now })
    for number in 0..<100 { store.insert(Samples.entry(try Samples.key("\(number)"), received: date.now)) }
    date.advance(milliseconds: 60_000)
    #expect(store.entries(for: try Samples.key("7")).count == 1)
    date.advance(milliseconds: 1)
    #expect(store.entries(for: try Samples.key("7")).isEmpty)
    // Each insertion removes the old entries of one of the 16 shards: the last such sweep was a second ago.
    for number in 0..<100 {
      date.advance(milliseconds: 1000)
      store.insert(Samples.entry(try Samples.key("new"), received: date.now + Int64(number)))
    }
    #expect(store.usage.keys == 1)
  }

  @Test("the store keeps at most maxEntries keys, and none when the limit is 0")
  func maxEntries() throws {
    let store = MemoryStore(CacheLimits(maxBytes: 64 << 20, maxEntries: 10))
    for number in 0..<1000 {
      store.insert(Samples.entry(try Samples.key("\(number)")))
      #expect(store.usage.keys <= 10)
    }
    #expect(store.usage.keys == 10)
    let none = MemoryStore(CacheLimits(maxBytes: 64 << 20, maxEntries: 0))
    none.insert(Samples.entry(try Samples.key("a")))
    #expect(none.entries(for: try Samples.key("a")).isEmpty)
  }

  @Test("promote inserts nothing if the key was removed since the change count was read")
  func promotionAfterRemoval() throws {
    let store = MemoryStore()
    let key = try Samples.key("a")
    let entry = Samples.entry(key)
    var changeCount = store.changeCount(of: key)
    store.promote([entry], for: key, since: changeCount)
    #expect(store.entries(for: key).count == 1)
    store.removeAll()
    changeCount = store.changeCount(of: key)
    store.removeAll(for: key)
    store.promote([entry], for: key, since: changeCount)
    #expect(store.entries(for: key).isEmpty)
  }

  /// Performs random operations on a store and on a dictionary without limits, which has the last entry of
  /// each key and each set of selectors. The store may have evicted an entry, but must not find another
  /// one. The bytes that the store counts never exceed its limit, and cover at least the weights of the
  /// found entries.
  @Test(
    "after random operations a look-up finds the last inserted entries, within the limits",
    arguments: 0..<10 as Range<UInt64>)
  func randomOperations(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let limits = CacheLimits(
      maxBytes: Int(random.below(200_000) + 30_000), maxEntries: random.below(2) == 0 ? nil : 40)
    let store = MemoryStore(limits)
    var model: [CacheKey: [[CacheEntry.Selector]: CacheEntry]] = [:]
    let keys = try (0..<120).map { try Samples.key("\($0 / 2)", partition: $0 % 2 == 0 ? "" : "other") }
    var moment: Int64 = 0
    for _ in 0..<4000 {
      moment += 1
      let key = keys[Int(random.below(UInt64(keys.count)))]
      let selectors =
        random.below(3) == 0 ? [CacheEntry.Selector(name: "accept", value: "\(random.below(4))")] : []
      switch random.below(20) {
      case 0:
        store.removeAll(for: key)
        model[key] = nil
      case 1:
        if let entry = model[key]?[selectors] { store.remove(entry) }
        model[key]?[selectors] = nil
      case 2...9:
        let body = [UInt8](repeating: UInt8(truncatingIfNeeded: moment), count: Int(random.below(4000)))
        let entry = Samples.entry(key, body: body, selectors: selectors, received: moment)
        store.insert(entry)
        model[key, default: [:]][selectors] = entry
      default:
        for entry in store.entries(for: key) { #expect(model[key]?[entry.selectors] === entry) }
      }
      #expect(store.usage.bytes <= limits.maxBytes)
      #expect(store.usage.keys <= limits.maxEntries ?? .max)
    }
    let held = keys.map { store.entries(for: $0) }.filter { !$0.isEmpty }
    #expect(held.count == store.usage.keys)
    #expect(held.reduce(0) { $0 + MemorySlot.weight(of: $1) } <= store.usage.bytes)
    store.removeAll()
    #expect(store.usage == .init(bytes: 0, keys: 0))
  }

  /// When few large entries replace many small ones, tables of the old size would waste memory.
  @Test("the tables shrink when few large entries replace many small ones")
  func shrinkingTables() throws {
    let limits = CacheLimits(maxBytes: 4 << 20)
    let store = MemoryStore(limits)
    for number in 0..<8000 {
      store.insert(Samples.entry(try Samples.key("\(number)"), body: []))
      #expect(store.usage.bytes <= limits.maxBytes)
    }
    let full = store.usage
    #expect(full.keys > 2000 && full.overhead > 300_000, "\(full)")
    for number in 0..<100 {
      store.insert(
        Samples.entry(try Samples.key("large \(number)"), body: [UInt8](repeating: 1, count: 300_000)))
      // Every second entry is requested again and moves to the main queue, which holds the small entries. The
      // others move to the ghost queue.
      for _ in 0..<2 where number % 2 == 0 { _ = store.entries(for: try Samples.key("large \(number)")) }
      #expect(store.usage.bytes <= limits.maxBytes)
    }
    let shrunk = store.usage
    #expect(shrunk.keys >= 8 && shrunk.keys < 100 && shrunk.overhead < full.overhead / 2, "\(shrunk)")
    let last = try (80..<100).filter { !store.entries(for: try Samples.key("large \($0)")).isEmpty }
    #expect(!last.isEmpty)
    store.removeAll()
    #expect(store.usage == .init(bytes: 0, keys: 0))
  }

  /// `CacheEntry.object` and `MemorySlot.object` are the sizes that the store counts for an object. They must
  /// not be smaller than the memory block of the object, including the allocator's header of 8 bytes.
  @Test("entries and slots take their counted size, or less than 32 bytes less")
  func objectSizes() throws {
    let key = try Samples.key("a")
    let entry = Samples.entry(key)
    let slot = MemorySlot(key, [entry])
    func size(_ object: AnyObject) -> Int {
      malloc_usable_size(Unmanaged.passUnretained(object).toOpaque()) + 8
    }
    #expect(size(entry) <= CacheEntry.object && size(entry) > CacheEntry.object - 32, "\(size(entry))")
    #expect(size(slot) <= MemorySlot.object && size(slot) > MemorySlot.object - 32, "\(size(slot))")
  }

  /// `HeapUse` counts the bytes of entries that were freed and not used again. These bytes are idle. Gaps
  /// are the idle bytes that the last call did not return to the system. A return is due when the idle
  /// bytes without the gaps exceed `maxIdle`, or after large blocks of twice this size were freed.
  @Test("returning memory is due when entry sizes change, except for gaps and after slow calls")
  func idleMemory() throws {
    let key = try Samples.key("a")
    let small = Samples.entry(key, body: [UInt8](repeating: 1, count: 1000))
    let large = Samples.entry(key, body: [UInt8](repeating: 1, count: 100_000))
    var heap = HeapUse(maxIdle: 300_000, maxGaps: 1_000_000)
    var now = MonotonicInstant(nanoseconds: 0)
    var isDue = false
    for _ in 0..<400 { heap.add([small]) }
    // Each new entry reuses the memory of a removed entry of similar size. So no memory becomes idle.
    for _ in 0..<10_000 {
      heap.remove([small])
      heap.add([small])
      isDue = isDue || heap.isDue { now }
    }
    #expect(!isDue)
    // Each exchange removes 100 small entries and adds one large entry. The large entry cannot use the
    // memory of the small ones, which becomes idle.
    var exchanged = 0
    while !heap.isDue(at: { now }) {
      for _ in 0..<100 { heap.remove([small]) }
      heap.add([large])
      exchanged += 1
    }
    #expect(exchanged == 2)
    // The first caller that gets `true` returns the memory. Other callers get `false` meanwhile.
    isDue = heap.isDue { now }
    #expect(!isDue)
    // The call returned two thirds of the idle memory. The last third counts as gaps, which new entries fill.
    let idle = heap.idle
    heap.recordTrim(.init(returned: idle / 3 * 2, free: .max), from: now, to: now)
    #expect(heap.gaps > idle / 4 && heap.gaps < idle / 2 && heap.idle == heap.gaps)
    for _ in 0..<200 { heap.add([small]) }
    #expect(heap.gaps == 0)
    // The heap has no free memory. So no memory counts as idle.
    heap.recordTrim(.init(returned: 0, free: 0), from: now, to: now)
    heap.remove([large])
    isDue = heap.isDue { now }
    #expect(heap.idle > 100_000 && heap.gaps == 0 && !isDue)
    heap.add([large])
    #expect(heap.idle == 0)
    // When it is unknown how much was returned, all idle memory counts as returned.
    for _ in 0..<2000 { heap.add([small]) }
    for _ in 0..<2000 { heap.remove([small]) }
    heap.recordTrim(.init(returned: nil, free: .max), from: now, to: now)
    #expect(heap.gaps == 0)
    for _ in 0..<2000 { heap.add([small]) }
    for _ in 0..<2000 { heap.remove([small]) }
    isDue = heap.isDue { now }
    #expect(isDue && heap.idle > 1_500_000)
    // This call returned nothing. All idle memory would count as gaps, but `maxGaps` limits the gaps. The
    // call took 200 ms, so the next call is due 2 s after its end.
    heap.recordTrim(.init(returned: 0, free: .max), from: now, to: now + .milliseconds(200))
    #expect(abs(heap.gaps - 1_000_000) < 10)
    for _ in 0..<2000 { heap.add([small]) }
    for _ in 0..<2000 { heap.remove([small]) }
    now = now + .milliseconds(2199)
    isDue = heap.isDue { now }
    #expect(!isDue)
    now = now + .milliseconds(2)
    isDue = heap.isDue { now }
    #expect(isDue)
  }

  @Test("a store asks its heap to return memory when sizes change, and counts memory that stays")
  func heapOfTheProgram() throws {
    // A heap that counts the calls of `trim` and returns no memory.
    final class Heap: ProcessHeap {
      let page = 4096
      let requests = Atomic(0)
      func trim() -> HeapTrimResult {
        requests.add(1, ordering: .relaxed)
        return HeapTrimResult(returned: 0, free: .max)
      }
    }
    // Inserts many small entries, which fill the store, and then few large ones, which replace small ones.
    func fill(_ store: MemoryStore) throws {
      for number in 0..<4000 {
        store.insert(
          Samples.entry(try Samples.key("small \(number)"), body: [UInt8](repeating: 1, count: 1000)))
      }
      for number in 0..<8 {
        store.insert(
          Samples.entry(try Samples.key("large \(number)"), body: [UInt8](repeating: 1, count: 400_000)))
      }
    }
    let heap = Heap()
    let store = MemoryStore(CacheLimits(maxBytes: 5_000_000), heap: heap)
    // A store without a heap. Its overhead contains no gaps.
    let other = MemoryStore(CacheLimits(maxBytes: 5_000_000))
    try fill(store)
    try fill(other)
    #expect(heap.requests.load(ordering: .relaxed) > 0)
    #expect(store.usage.overhead > other.usage.overhead)
    #expect(store.usage.bytes <= 5_000_000 && other.usage.bytes <= 5_000_000)
    let before = heap.requests.load(ordering: .relaxed)
    store.removeAll()
    #expect(heap.requests.load(ordering: .relaxed) == before + 1)
  }

  @Test("an insertion removes entries of the key that are dated after the current time")
  func datesInTheFuture() throws {
    let key = try Samples.key("a")
    let selectors = [CacheEntry.Selector(name: "accept", value: "x")]
    let others = [CacheEntry.Selector(name: "accept", value: "y")]
    let store = MemoryStore(now: { 1_000_000 })
    store.insert(Samples.entry(key, selectors: selectors, received: 1_000_001))
    store.insert(Samples.entry(key, selectors: others, received: 1_000_000))
    #expect(store.entries(for: key).map(\.selectors) == [others])
    store.insert(Samples.entry(key, selectors: selectors, received: 999_999))
    #expect(store.entries(for: key).count == 2)
  }

  @Test("a removal prevents promotions of older entries, even if memory had no entry")
  func removalChangesTheCount() throws {
    let key = try Samples.key("a")
    let store = MemoryStore()
    let changeCount = store.changeCount(of: key)
    store.remove(key) { _ in true }
    store.promote([Samples.entry(key)], for: key, since: changeCount)
    #expect(store.entries(for: key).isEmpty)
    store.promote([Samples.entry(key)], for: key, since: store.changeCount(of: key))
    #expect(store.entries(for: key).count == 1)
  }

  /// After a 304, a new entry with the same body replaces the old one. This frees no memory of bodies.
  @Test("revalidations with unchanged bodies do not make returning memory due")
  func revalidations() throws {
    let key = try Samples.key("a")
    let large = Samples.entry(key, body: [UInt8](repeating: 1, count: 300_000))
    var heap = HeapUse(maxIdle: 300_000, maxGaps: 1_000_000)
    let now = MonotonicInstant(nanoseconds: 0)
    let variants = Array(repeating: large, count: 16)
    heap.add(variants)
    for _ in 0..<1000 {
      heap.replace(variants, with: variants)
      let isDue = heap.isDue { now }
      #expect(!isDue)
    }
  }

  @Test("concurrent tasks find only entries of the requested keys, within the limit of bytes")
  func concurrency() async throws {
    let store = MemoryStore(CacheLimits(maxBytes: 300_000))
    let keys = try (0..<200).map { try Samples.key("\($0)") }
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          var random = SplitMix64(seed: UInt64(task))
          for _ in 0..<5000 {
            let key = keys[Int(random.below(200))]
            switch random.below(10) {
            case 0...2:
              store.insert(Samples.entry(key, body: [UInt8](repeating: 1, count: Int(random.below(3000)))))
            case 3: store.removeAll(for: key)
            default: for entry in store.entries(for: key) { #expect(entry.key == key) }
            }
          }
        }
      }
    }
    #expect(store.usage.bytes <= 300_000)
    #expect(keys.filter { !store.entries(for: $0).isEmpty }.count == store.usage.keys)
  }
}
