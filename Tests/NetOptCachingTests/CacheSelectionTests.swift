import Dispatch
import NetOptCore
import NetOptSQLite
import Synchronization
import TestTools
import Testing

@testable import NetOptCaching

/// Tests which entries a removal by the program finds, in memory and on the disk.
struct CacheSelectionTests {
  private static let url = "https://a.test/r"

  /// An entry of the API with a name, fetched from a URL.
  private static func named(
    _ name: String, _ target: String, partition: String = "", body: [UInt8] = [1]
  ) throws -> CacheEntry {
    let url = try HTTPURL("https://a.test" + target)
    let key = try CacheKey(api: name, parameters: target, partition: partition + "\0at \(url.origin)")
    return CacheEntry(
      key: key, status: 200, fields: [:], body: body, requested: 1, received: 2, declaredExpiry: 10_000,
      resource: ResourceHash.of(url, isNamed: true), fetchMicroseconds: 1)
  }

  @Test("the number of a URL is among all its numbers for each parameter that may be the version")
  func numbers() throws {
    let url = try HTTPURL(Self.url + "?b=1&a=x&%zz&b=y&c=7&&d")
    let all = ResourceHash.all(of: url)
    #expect(all.contains(try #require(ResourceHash.of(url, isNamed: true))))
    for isNamed in [true, false] {
      for version in ["b", "c"] {
        #expect(all.contains(try #require(ResourceHash.of(url, isNamed: isNamed, version: version))))
      }
      for version in ["a", "d", "e", ""] {
        #expect(!all.contains(try #require(ResourceHash.of(url, isNamed: isNamed, version: version))))
      }
    }
    #expect(all.count == 5)
    // The order and the form of the parameters do not matter.
    #expect(ResourceHash.all(of: try HTTPURL(Self.url + "?b=y&c=7&d&%61=x&b=1&%zz")) == all)
    let others = ["?b=1&a=x&%zz&b=y&c=7", "?b=2&a=x&%zz&b=y&c=7&&d", "?b=1&a=x&%zz&b=y&c=7&c=7&&d", ""]
    for other in others + ["/?b=1&a=x&%zz&b=y&c=7&&d"] {
      #expect(!all.contains(try #require(ResourceHash.of(try HTTPURL(Self.url + other), isNamed: true))))
    }
  }

  @Test("the disk removes the entries of a URL from more partitions than one step, and no other entry")
  func manyPartitions() throws {
    let directory = try TemporaryDirectory.make("cache-selection") + "/cache"
    let store = DiskStore(directory) { Issue.record("\($0)") }
    let url = try HTTPURL(Self.url + "?q=1")
    let count = DiskConnection.removalBatch + 100
    let kept = [
      Samples.entry(try RequestKey.url(HTTPURL(Self.url), partition: "")), try Self.named("n", "/r?q=2"),
      Samples.entry(try RequestKey.url(HTTPURL(Self.url + "?q=2"), partition: "p1")),
    ]
    for entry in kept { store.insert(entry) }
    for number in 0..<count {
      store.insert(Samples.entry(try RequestKey.url(url, partition: "p\(number)")))
      store.insert(try Self.named("n\(number % 3)", "/r?q=1", partition: "p\(number)"))
    }
    let large = [UInt8](repeating: 1, count: 150_000)
    store.insert(Samples.entry(try RequestKey.canonical(url, partition: "large"), body: large))
    var steps = 0
    var position: RemovalPosition? = RemovalPosition()
    while let next = position {
      let before = try #require(store.usage()).entries
      position = store.remove(try CacheSelection(url: url), from: next)
      let removed = before - (try #require(store.usage()).entries)
      #expect(removed <= DiskConnection.removalBatch)
      steps += 1
    }
    #expect(steps > 2)
    for entry in kept { #expect(store.entries(for: entry.key).count == 1) }
    store.close()
    let inspection = try DiskInspection(directory)
    let usage = try inspection.usage()
    #expect((usage.entries, usage.files) == (3, 0))
    #expect(try inspection.verify().isSound)
  }

  @Test("the disk removes the entries of a name from more entries than one step, and no other entry")
  func manyNames() throws {
    let directory = try TemporaryDirectory.make("cache-selection") + "/cache"
    let store = DiskStore(directory) { Issue.record("\($0)") }
    let count = DiskConnection.removalBatch * 2 + 50
    for number in 0..<count {
      store.insert(try Self.named("name \(number % 2)", "/r?q=\(number / 4)", partition: "\(number)"))
    }
    store.insert(Samples.entry(try Samples.key("a")))
    var position: RemovalPosition? = RemovalPosition()
    while let next = position { position = store.remove(.name("name 1"), from: next) }
    #expect(store.usage()?.entries == Int64(count / 2 + 1))
    #expect(store.entries(for: try Self.named("name 0", "/r?q=0", partition: "0").key).count == 1)
    #expect(store.entries(for: try Self.named("name 1", "/r?q=0", partition: "1").key).isEmpty)
    store.close()
  }

  @Test("a removal that failed is done before the next look-up", arguments: [0, 1, 2])
  func lockedDatabase(kind: Int) throws {
    let directory = try TemporaryDirectory.make("cache-selection") + "/cache"
    let warnings = Warnings()
    let store = DiskStore(directory, patience: 200, pause: .zero) { warnings.add($0) }
    let entry = try Self.named("name", "/r")
    let other = try Self.named("other", "/s")
    for each in [entry, other] { store.insert(each) }
    let selection: CacheSelection =
      switch kind {
      case 0: try CacheSelection(url: try HTTPURL(Self.url))
      case 1: .name("name")
      default: .everything
      }
    let database = try Database(directory + "/responses.db")
    try database.execute("BEGIN IMMEDIATE")
    #expect(store.remove(selection, from: RemovalPosition()) == nil)
    // A read would succeed. But the removal is pending, so the look-up finds nothing.
    #expect(store.entries(for: entry.key).isEmpty)
    try database.execute("COMMIT")
    #expect(store.entries(for: entry.key).isEmpty)
    #expect(store.entries(for: other.key).count == (kind == 2 ? 0 : 1))
    #expect(warnings.messages.isEmpty)
    store.close()
  }

  @Test("a pending removal is done before the next look-up, and the removals of large selections are limited")
  func pendingRemoval() throws {
    let directory = try TemporaryDirectory.make("cache-selection") + "/cache"
    let store = DiskStore(directory) { Issue.record("\($0)") }
    let entry = try Self.named("name", "/r")
    let other = try Self.named("other", "/s")
    for each in [entry, other] { store.insert(each) }
    store.removeLater(.selection(.name("name")))
    #expect(store.entries(for: entry.key).isEmpty && store.entries(for: other.key).count == 1)
    store.removeLater(.everything)
    #expect(store.entries(for: other.key).isEmpty)
    store.close()
    var pending = PendingRemovals()
    for number in 0..<100 {
      // Has about 200 digests and numbers.
      let query = (0..<100).map { "\($0)=\(number)" }.joined(separator: "&")
      let selection = try CacheSelection(url: try HTTPURL(Self.url + "?" + query))
      for _ in 0..<2 { pending.add(.selection(selection)) }
      let weight = pending.selections.reduce(0) { $0 + $1.weight }
      #expect(weight <= PendingRemovals.mostKeys)
      #expect(pending.isEverything || pending.selections.count == number + 1)
    }
    #expect(pending.isEverything && pending.selections.isEmpty)
  }

  @Test("a removal from memory finds an entry that another thread promotes at the same time")
  func promotionMeanwhile() throws {
    // Each promotion of the large entry evicts many small entries, which takes long.
    let store = MemoryStore(CacheLimits(maxBytes: 600_000))
    let key = try Samples.key("promoted")
    let large = Samples.entry(key, body: [UInt8](repeating: 1, count: 50_000))
    let small = try (0..<4000).map { Samples.entry(try Samples.key("\($0)")) }
    var next = 0
    var remaining = 0
    for _ in 0..<200 {
      for _ in 0..<small.count where store.usage.bytes < 590_000 {
        store.insert(small[next % small.count])
        next += 1
      }
      let count = store.changeCount(of: key)
      // Both threads begin at the same time.
      let ready = Atomic<Int>(0)
      DispatchQueue.concurrentPerform(iterations: 2) { thread in
        ready.add(1, ordering: .acquiringAndReleasing)
        // With one processor, both iterations may run on one thread.
        var spins = 0
        while ready.load(ordering: .acquiring) < 2, spins < 100_000 { spins += 1 }
        if thread == 0 {
          store.promote([large], for: key, since: count)
        } else {
          store.remove { $0.key == key }
        }
      }
      remaining += store.entries(for: key).count
      store.removeAll(for: key)
    }
    #expect(remaining == 0)
    #expect(store.usage.entries == store.usage.keys)
  }

  @Test(
    "memory removes matching entries, keeps the other variants, and promotes nothing that was read before")
  func memory() throws {
    let store = MemoryStore()
    let keys = try (0..<100).map { try Samples.key("\($0)") }
    for key in keys {
      for value in ["a", "b"] {
        store.insert(
          Samples.entry(key, selectors: [.init(name: "x", value: value)], version: value == "a" ? 1 : 2))
      }
    }
    #expect(store.usage.entries == 200)
    let counts = keys.map(store.changeCount)
    store.remove { $0.resourceVersion == 1 }
    #expect((store.usage.entries, store.usage.keys, store.evicted) == (100, 100, 0))
    store.remove { $0.resourceVersion == 2 }
    #expect((store.usage.entries, store.usage.keys) == (0, 0))
    for (key, count) in zip(keys, counts) {
      store.promote([Samples.entry(key)], for: key, since: count)
      #expect(store.entries(for: key).isEmpty)
    }
  }

  @Test("the number of the resource survives the disk, a 304 and a change of the key")
  func kept() throws {
    let directory = try TemporaryDirectory.make("cache-selection") + "/cache"
    let store = DiskStore(directory) { Issue.record("\($0)") }
    let entry = try Self.named("name", "/r")
    store.insert(entry)
    #expect(store.entries(for: entry.key).first?.resource == entry.resource)
    #expect(entry.replacing(key: try Samples.key("a")).resource == entry.resource)
    let updated = Freshening.updated(
      entry, with: [:], for: CacheRequest(try NetOptRequest(.get, Self.url)), requested: 1, received: 2)
    #expect(updated.resource == entry.resource)
    store.close()
  }
}
