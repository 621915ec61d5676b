import FoundationEssentials
import Glibc
import NetOptCore
import NetOptSQLite
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCaching

struct DiskStoreTests {
  /// The directory of the cache. It does not exist until a store creates it.
  let directory: String
  let warnings = Warnings()

  init() throws { directory = try TemporaryDirectory.make("disk-store") + "/cache" }

  /// A store with these limits. `now` returns the date in milliseconds since 1970.
  private func store(
    _ limits: CacheLimits = .disk, now: @escaping @Sendable () -> Int64 = { 1_700_000_000_000 }
  ) -> DiskStore {
    DiskStore(directory, limits: limits, now: now) { [warnings] in warnings.add($0) }
  }

  /// The names of the body files.
  private func files() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory + "/bodies")
  }

  @Test("a new store on the same directory returns all fields of an entry")
  func allFields() throws {
    let key = try Samples.key("a", partition: "tenant")
    let entry = CacheEntry(
      key: key, selectors: [.init(name: "accept", value: "text/html"), .init(name: "x", value: nil)],
      status: 404,
      fields: ["Content-Type": "text/plain; charset=\"ü\"", "Set-Cookie": "a", "set-cookie": "b"],
      body: Array(0...255), requested: 5, received: 1_700_000_000_000, declaredExpiry: 9, resourceVersion: -3,
      fetchMicroseconds: 77)
    store().insert(entry)
    let found = try #require(store().entries(for: key).first)
    #expect(found.key == key && found.selectors == entry.selectors && found.fields == entry.fields)
    #expect(found.status == 404 && found.body == entry.body)
    #expect(found.requested == 5 && found.received == entry.received && found.fetchMicroseconds == 77)
    #expect(found.declaredExpiry == 9 && found.resourceVersion == -3)
    #expect(warnings.messages.isEmpty)
  }

  @Test("a body of more than 100 KB has a file, which is removed when the entry is replaced")
  func bodyFiles() throws {
    let store = store()
    let key = try Samples.key("a")
    let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    store.insert(Samples.entry(key, body: Array(body.prefix(100_000))))
    #expect(try files().isEmpty)
    store.insert(Samples.entry(key, body: body))
    #expect(try files().count == 1)
    #expect(store.entries(for: key).first?.body == body)
    store.insert(Samples.entry(key, body: body.reversed()))
    #expect(try files().count == 1)
    store.insert(Samples.entry(key))
    #expect(try files().isEmpty)
    #expect(store.entries(for: key).first?.body == Array("hello".utf8))
  }

  @Test("only the user may access the directory and its files")
  func permissions() throws {
    let store = store()
    store.insert(Samples.entry(try Samples.key("a"), body: [UInt8](repeating: 1, count: 200_000)))
    for path in [directory, directory + "/bodies"] { #expect(try mode(path) == 0o700) }
    for name in [
      "responses.db", "responses.db-wal", "responses.db-shm", "lock",
      "bodies/" + (try #require(try files().first)),
    ] {
      #expect(try mode("\(directory)/\(name)") == 0o600, "\(name)")
    }
  }

  /// The permission bits of a file or folder.
  private func mode(_ path: String) throws -> UInt32 {
    var status = stat()
    let code = lstat(path, &status)
    try #require(code == 0, "\(path)")
    return status.st_mode & 0o7777
  }

  @Test("insert and remove delete overlapping entries, removeAll deletes all, with their body files")
  func removals() throws {
    let store = store()
    let key = try Samples.key("a")
    let selectors = [CacheEntry.Selector(name: "accept", value: "x")]
    let others = [CacheEntry.Selector(name: "accept", value: "y")]
    let old = Samples.entry(key, selectors: others, received: 1_600_000_000_000)
    store.insert(old)
    store.insert(Samples.entry(key, selectors: selectors))
    store.insert(Samples.entry(key, selectors: others))
    #expect(store.entries(for: key).count == 2)
    // A disk store also removes an overlapping entry that was received later.
    store.remove(old)
    #expect(store.entries(for: key).map(\.selectors) == [selectors])
    store.insert(Samples.entry(key, selectors: others))
    store.remove(Samples.entry(key, selectors: selectors))
    #expect(store.entries(for: key).map(\.selectors) == [others])
    // An entry with a date in the future was stored before the clock was set back. The next insertion for the
    // key removes it.
    store.insert(Samples.entry(key, selectors: selectors, received: WallClock.now() + 1_000_000))
    store.insert(Samples.entry(key, selectors: others))
    #expect(store.entries(for: key).map(\.selectors) == [others])
    store.removeAll(for: key)
    #expect(store.entries(for: key).isEmpty)
    store.insert(Samples.entry(key, body: [UInt8](repeating: 0, count: 200_000)))
    store.removeAll()
    #expect(store.entries(for: key).isEmpty)
    #expect(try files().isEmpty)
  }

  @Test("a key keeps its 16 latest variants, with their body files only")
  func mostVariants() throws {
    let store = store()
    let key = try Samples.key("a")
    for number in 0..<40 {
      let body = [UInt8](repeating: UInt8(number), count: number % 4 == 0 ? 150_000 : 10)
      store.insert(
        Samples.entry(
          key, body: body, selectors: [.init(name: "accept", value: "\(number)")],
          received: 1_600_000_000_000 + Int64(number)))
    }
    #expect(try DiskInspection(directory).usage().entries == 16)
    #expect(store.entries(for: key).compactMap(\.body.first) == (24..<40).reversed())
    #expect(try files().count == 4)
  }

  @Test("the store remembers the last 1000 evictions")
  func rememberedEvictions() throws {
    let date = StoppedDate()
    let store = store(CacheLimits(maxBytes: 64 << 20, maxAge: .seconds(60)), now: { date.now })
    for number in 0..<1100 {
      store.insert(Samples.entry(try Samples.key("\(number)"), received: date.now))
    }
    date.advance(milliseconds: 60_001)
    store.open()
    let usage = try DiskInspection(directory).usage()
    #expect(usage.entries == 0 && usage.evictedForAge == 1000)
  }

  @Test("partitions do not share entries, and the files do not contain their names")
  func partitions() throws {
    let store = store()
    let mine = try Samples.key("a", partition: "Bearer my-secret")
    let yours = try Samples.key("a", partition: "Bearer your-secret")
    let nobodys = try Samples.key("a")
    store.insert(Samples.entry(mine, body: [1]))
    #expect(store.entries(for: yours).isEmpty && store.entries(for: nobodys).isEmpty)
    store.insert(Samples.entry(yours, body: [2]))
    store.removeAll(for: nobodys)
    #expect(store.entries(for: mine).map(\.body) == [[1]])
    #expect(store.entries(for: yours).map(\.body) == [[2]])
    store.close()
    for name in try FileManager.default.contentsOfDirectory(atPath: directory)
    where name.hasPrefix("responses") {
      // Not `Data(contentsOf:)`: on Linux it leaks 4 KiB for each empty file, and the write-ahead log is
      // empty.
      let bytes = try FileBytes.read("\(directory)/\(name)", upTo: 1 << 24, as: "a file", in: .cache)
      #expect(!String(decoding: bytes, as: UTF8.self).contains("my-secret"), "\(name)")
    }
  }

  @Test("keys with the same digest do not share entries")
  func collision() throws {
    let (one, other) = try Samples.collision()
    let store = store()
    store.insert(Samples.entry(one, body: [1]))
    #expect(store.entries(for: other).isEmpty)
    store.insert(Samples.entry(other, body: [2]))
    #expect(store.entries(for: one).map(\.body) == [[1]])
    store.removeAll(for: one)
    #expect(store.entries(for: other).map(\.body) == [[2]])
  }

  @Test("the store evicts entries that are cheap and rarely used, and keeps a costly one")
  func eviction() throws {
    let store = store(CacheLimits(maxBytes: 200_000))
    // An entry that is used often, and whose fetch took 1 s. The fetch of each other entry took 10 ms.
    let dear = try Samples.key("dear")
    store.insert(Samples.entry(dear, body: [UInt8](repeating: 1, count: 4000), cost: 1_000_000))
    for _ in 0..<5 { #expect(store.entries(for: dear).count == 1) }
    for number in 0..<200 {
      store.insert(
        Samples.entry(try Samples.key("\(number)"), body: [UInt8](repeating: 2, count: 4000), cost: 10_000))
    }
    #expect(store.entries(for: dear).count == 1)
    let inspection = try DiskInspection(directory)
    let usage = try inspection.usage()
    #expect(usage.bytes <= 200_000 && usage.entries > 20 && usage.evictedForRoom > 100)
    #expect(store.eviction(of: try Samples.key("0"))?.reason == .room)
    #expect(store.eviction(of: dear)?.reason == nil)
    #expect(try inspection.items(upTo: 1).first?.hits ?? 0 >= 5)
  }

  @Test("a costly entry that is not used any more is evicted in the end")
  func aging() throws {
    // Each eviction raises the clock of GDSF, which is a part of the priority of new entries. So their
    // priority finally exceeds that of the old entry.
    let store = store(CacheLimits(maxBytes: 200_000))
    let old = try Samples.key("old")
    store.insert(Samples.entry(old, body: [UInt8](repeating: 1, count: 4000), cost: 100_000))
    for number in 0..<3000 {
      store.insert(
        Samples.entry(try Samples.key("\(number)"), body: [UInt8](repeating: 2, count: 4000), cost: 10_000))
    }
    #expect(store.entries(for: old).isEmpty)
  }

  @Test("the limits of bytes, entries and age hold after each insertion")
  func limits() throws {
    let date = StoppedDate()
    let limits = CacheLimits(maxBytes: 3 << 20, maxEntries: 20, maxAge: .seconds(60))
    let store = store(limits, now: { date.now })
    var random = SplitMix64(seed: 4)
    for number in 0..<300 {
      let body = [UInt8](repeating: 1, count: Int(random.below(260_000)))
      store.insert(Samples.entry(try Samples.key("\(number)"), body: body, received: date.now))
      date.advance(milliseconds: 5000)
      let usage = try DiskInspection(directory).usage()
      #expect(usage.entries <= 20 && usage.bytes <= 3 << 20)
      // The clock has advanced by 5 s since the store checked the ages. So the oldest entry may be 65 s
      // old.
      #expect(usage.oldest ?? 0 >= date.now - 65_000)
    }
    #expect(try files().count <= 20)
    date.advance(milliseconds: 60_001)
    #expect(store.entries(for: try Samples.key("299")).isEmpty)
    store.open()
    #expect(try DiskInspection(directory).usage().entries == 0)
    #expect(try files().isEmpty)
    #expect(store.eviction(of: try Samples.key("299"))?.reason == .age)
  }

  @Test("opening the store with lower limits evicts entries")
  func lowerLimits() throws {
    let first = store()
    for number in 0..<50 { first.insert(Samples.entry(try Samples.key("\(number)"))) }
    first.close()
    store(CacheLimits(maxBytes: 1 << 20, maxEntries: 5)).open()
    #expect(try DiskInspection(directory).usage().entries == 5)
  }

  @Test("an entry larger than a tenth of maxBytes is not stored and removes the old entry")
  func tooLarge() throws {
    let store = store(CacheLimits(maxBytes: 100_000))
    let key = try Samples.key("a")
    store.insert(Samples.entry(key))
    store.insert(Samples.entry(key, body: [UInt8](repeating: 1, count: 50_000)))
    #expect(store.entries(for: key).isEmpty)
  }

  @Test func twoStoresShareADirectory() throws {
    let one = store()
    let other = store()
    for number in 0..<100 {
      let key = try Samples.key("\(number)")
      let (writer, reader) = number % 2 == 0 ? (one, other) : (other, one)
      writer.insert(Samples.entry(key, body: [UInt8(number)]))
      #expect(reader.entries(for: key).map(\.body) == [[UInt8(number)]])
    }
    #expect(warnings.messages.isEmpty)
  }

  /// Performs random operations on a store and on a dictionary, which has the last body of each key. The
  /// store may have evicted an entry, but must not find another body.
  @Test(
    "after random operations a look-up finds the last inserted entry or none",
    arguments: 0..<4 as Range<UInt64>)
  func randomOperations(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let limits = CacheLimits(maxBytes: 4 << 20, maxEntries: 30)
    var store = store(limits)
    var model: [CacheKey: [UInt8]] = [:]
    for step in 0..<800 {
      let key = try Samples.key("\(random.below(50))", partition: random.below(2) == 0 ? "" : "p")
      switch random.below(20) {
      case 0:
        store.removeAll(for: key)
        model[key] = nil
      case 1:
        store.close()
        store = self.store(limits)
      case 2...9:
        let large = random.below(8) == 0
        let body = [UInt8](
          repeating: UInt8(truncatingIfNeeded: step), count: Int(random.below(large ? 200_000 : 5000)))
        store.insert(Samples.entry(key, body: body))
        model[key] = body
      default:
        let found = store.entries(for: key)
        #expect(found.count <= 1)
        if let body = found.first?.body { #expect(model[key] == body) }
      }
    }
    let inspection = try DiskInspection(directory)
    let verification = try inspection.verify()
    #expect(verification.isSound, "\(verification)")
    #expect(try inspection.usage().entries <= 30)
    #expect(warnings.messages.isEmpty)
  }

  @Test("an inspection hides secrets in URLs and parameters, and shows API names as they are")
  func inspectionHidesSecrets() throws {
    let store = store()
    for api in ["GET https://a.test/x;jsessionid=abc/y", "shop/live/key=item", "POST shop/live"] {
      store.insert(Samples.entry(try CacheKey(api: api, parameters: "token=abc&q=1")))
    }
    let inspection = try DiskInspection(directory)
    let items = try inspection.items(upTo: 9)
    #expect(
      Set(items.map(\.api)) == [
        "GET https://a.test/x;jsessionid=[hidden]/y", "shop/live/key=item", "POST shop/live",
      ])
    #expect(items.allSatisfy { $0.parameters == "token=[hidden]&q=1" })
  }

  @Test("an inspection shows nothing of a long key that may be a password, wherever its @ stands")
  func inspectionHidesLongPasswords() throws {
    let store = store()
    let long = "letmein" + String(repeating: "x", count: 20_000)
    let url = "GET https://a.test/proxy/https://u:\(long)@b.test/"
    store.insert(Samples.entry(try CacheKey(api: url, parameters: "to=https://u:\(long)%40b.test/")))
    store.insert(Samples.entry(try CacheKey(api: "GET https://a.test/\(long)", parameters: "q=\(long)")))
    let items = try DiskInspection(directory).items(upTo: 9)
    #expect(items.count == 2)
    for item in items {
      let isHidden = !item.api.contains("letmein") && !item.parameters.contains("letmein")
      let isShown = item.api.hasPrefix("GET https://a.test/letmein") && item.parameters.hasPrefix("q=letmein")
      #expect(isHidden || isShown)
      #expect(item.api.utf8.count < 17_000 && item.parameters.utf8.count < 17_000)
    }
    #expect(items.count { $0.api.contains("letmein") } == 1)
  }
}
