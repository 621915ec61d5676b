import NetOptCore
import Testing

@testable import NetOptCaching

struct MemoryStoreTests {
  @Test func sharesWhatItHas() throws {
    let store = MemoryStore()
    let key = try Samples.key("a")
    let entry = Samples.entry(key)
    store.insert(entry)
    let found = store.entries(for: try Samples.key("a"))
    #expect(found.count == 1)
    #expect(found.first === entry)
    #expect(store.entries(for: try Samples.key("b")).isEmpty)
  }

  @Test func aHitSharesTheBody() throws {
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

  @Test func hasAnEntryForEachSetOfSelectors() throws {
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
    // The old one is not there any more; the new one stays.
    store.remove(german)
    #expect(store.entries(for: key).map(\.received) == [3, 2])
    store.remove(newer)
    #expect(store.entries(for: key).map(\.received) == [2])
    store.removeAll(for: key)
    #expect(store.entries(for: key).isEmpty)
    #expect(store.usage.keys == 0)
  }

  @Test func variantsDoNotPileUp() throws {
    let store = MemoryStore()
    let key = try Samples.key("a")
    for number in 0..<100 {
      let selectors = [CacheEntry.Selector(name: "user-agent", value: "\(number)")]
      store.insert(Samples.entry(key, selectors: selectors, received: Int64(number)))
    }
    #expect(store.entries(for: key).map(\.received) == Array((84..<100).reversed()))
  }

  @Test func partitionsDoNotSeeEachOther() throws {
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

  @Test func aCollisionIsAMiss() throws {
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

  @Test func whatIsTooLargeTakesTheOldOneAway() throws {
    let store = MemoryStore(CacheLimits(maxBytes: 100_000))
    let key = try Samples.key("a")
    store.insert(Samples.entry(key))
    store.insert(Samples.entry(key, body: [UInt8](repeating: 0, count: 20_000)))
    #expect(store.entries(for: key).isEmpty)
    #expect(store.usage.keys == 0)
  }

  @Test func whatIsTooOldIsNotThere() throws {
    let date = StoppedDate()
    let limits = CacheLimits(maxBytes: 1 << 20, maxAge: .seconds(60))
    let store = MemoryStore(limits, now: { date.now })
    for number in 0..<100 { store.insert(Samples.entry(try Samples.key("\(number)"), received: date.now)) }
    date.advance(milliseconds: 60_000)
    #expect(store.entries(for: try Samples.key("7")).count == 1)
    date.advance(milliseconds: 1)
    #expect(store.entries(for: try Samples.key("7")).isEmpty)
    // It is removed in parts, with what comes in.
    for number in 0..<100 {
      date.advance(milliseconds: 1000)
      store.insert(Samples.entry(try Samples.key("new"), received: date.now + Int64(number)))
    }
    #expect(store.usage.keys == 1)
  }

  @Test func maxEntriesHolds() throws {
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

  @Test func whatWasRemovedDoesNotComeBackUp() throws {
    let store = MemoryStore()
    let key = try Samples.key("a")
    let entry = Samples.entry(key)
    var mark = store.mark(of: key)
    store.promote([entry], for: key, since: mark)
    #expect(store.entries(for: key).count == 1)
    store.removeAll()
    mark = store.mark(of: key)
    store.removeAll(for: key)
    store.promote([entry], for: key, since: mark)
    #expect(store.entries(for: key).isEmpty)
  }

  /// Random operations beside a table without bounds: what is found is what was put in last, and the bytes are what the
  /// entries that are found weigh, and never too many.
  @Test(arguments: 0..<10 as Range<UInt64>) func findsWhatWasPutInLast(seed: UInt64) throws {
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

  @Test func manyThreadsAtOnce() async throws {
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
