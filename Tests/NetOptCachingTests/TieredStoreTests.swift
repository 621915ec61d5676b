import FoundationEssentials
import NetOptCore
import NetOptCrypto
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCaching

struct TieredStoreTests {
  /// The directory of the disk tier. It does not exist until a store creates it.
  let directory: String
  let warnings = Warnings()

  init() throws { directory = try TemporaryDirectory.make("tiers") + "/cache" }

  /// A store with all tiers. `memory` is the limit of the memory tier, and `mostWaiting` that of the
  /// entries that wait for the disk (`DiskCache.init`), both in bytes.
  private func tiers(memory: Int = 64 << 20, seeds: [SeedPack] = [], mostWaiting: Int = 8 << 20)
    -> TieredStore
  {
    let disk = DiskStore(directory) { [warnings] in warnings.add($0) }
    return TieredStore(
      memory: MemoryStore(CacheLimits(maxBytes: memory)), disk: DiskCache(disk, mostWaiting: mostWaiting),
      seeds: seeds)
  }

  @Test("an entry that memory evicted is found on the disk and returns to memory")
  func evictedFromMemory() async throws {
    let store = tiers(memory: 30_000)
    let keys = try (0..<50).map { try Samples.key("\($0)") }
    for (number, key) in keys.enumerated() { store.insert(Samples.entry(key, body: [UInt8(number)])) }
    let evicted = keys.filter { store.memory.entries(for: $0).isEmpty }
    #expect(evicted.count > 10)
    for (number, key) in keys.enumerated() {
      #expect(await store.entries(for: key).map(\.body) == [[UInt8(number)]])
    }
    // A look-up that finds an entry on the disk inserts it into memory.
    let last = try #require(evicted.last)
    _ = await store.entries(for: last)
    #expect(store.memory.entries(for: last).count == 1)
    await store.shutdown()
    #expect(warnings.messages.isEmpty)
  }

  @Test("entries and removals survive a restart of the store")
  func restart() async throws {
    let key = try Samples.key("a")
    let first = tiers()
    first.insert(Samples.entry(key))
    await first.shutdown()
    let second = tiers()
    #expect(second.memory.entries(for: key).isEmpty)
    #expect(await second.entries(for: key).count == 1)
    second.removeAll(for: key)
    await second.shutdown()
    let third = tiers()
    #expect(await third.entries(for: key).isEmpty)
    await third.shutdown()
  }

  @Test("only entries that stay fresh for 10 s and have at most 16 MiB are written to the disk")
  func writeThrough() async throws {
    let store = tiers()
    let moment: Int64 = 1_700_000_000_000
    // `short` and `long` state when they expire. The caller says how long `known` stays fresh. For `unknown`
    // and `large`, this is unknown.
    let (short, long, unknown, large, known) = (
      try Samples.key("short"), try Samples.key("long"), try Samples.key("unknown"), try Samples.key("large"),
      try Samples.key("known")
    )
    store.insert(Samples.entry(short, expiry: moment + 9999))
    store.insert(Samples.entry(long, expiry: moment + 10_000))
    store.insert(Samples.entry(unknown))
    store.insert(Samples.entry(large, body: [UInt8](repeating: 0, count: (16 << 20) + 1)))
    store.insert(Samples.entry(known), ageLeft: .seconds(5))
    await store.disk?.flush()
    let disk = try #require(store.disk).store
    #expect(
      disk.entries(for: short).isEmpty && disk.entries(for: large).isEmpty && disk.entries(for: known).isEmpty
    )
    #expect(disk.entries(for: long).count == 1 && disk.entries(for: unknown).count == 1)
    // An entry that is not written still removes the old entry from the disk.
    store.insert(Samples.entry(long, received: moment + 1, expiry: moment + 2))
    await store.disk?.flush()
    #expect(disk.entries(for: long).isEmpty)
    await store.shutdown()
  }

  @Test("a disk look-up does not bring back an entry that is removed meanwhile")
  func concurrentRemoval() async throws {
    let store = tiers()
    let key = try Samples.key("a")
    for _ in 0..<200 {
      let entry = Samples.entry(key)
      store.insert(entry)
      store.memory.removeAll(for: key)
      // The removal comes while the disk look-up runs.
      async let found = store.entries(for: key)
      await Task.yield()
      store.removeAll(for: key)
      _ = await found
      #expect(await store.entries(for: key).isEmpty)
    }
    await store.shutdown()
  }

  @Test("an entry beyond mostWaiting is not written and removes the old entry from the disk")
  func fullQueue() async throws {
    let store = tiers(mostWaiting: 10_000)
    let key = try Samples.key("a")
    store.insert(Samples.entry(key))
    await store.disk?.flush()
    store.insert(Samples.entry(key, body: [UInt8](repeating: 1, count: 20_000), received: 1_700_000_000_001))
    await store.disk?.flush()
    #expect(store.disk?.store.entries(for: key).isEmpty ?? false)
    #expect(store.memory.entries(for: key).count == 1)
    await store.shutdown()
    // After the shutdown, calls have no effect and return at once.
    store.insert(Samples.entry(key))
    #expect(await store.disk?.entries(for: key).isEmpty ?? false)
  }

  // MARK: Seed packs

  /// Writes a seed pack with this index and these files, and returns its directory.
  private func pack(_ index: String, _ files: [String: String] = [:]) throws -> String {
    let folder = try TemporaryDirectory.make("seeds")
    for (name, text) in files { try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(name)")) }
    try Data(index.utf8).write(to: URL(fileURLWithPath: folder + "/index.json"))
    return folder
  }

  /// Opens a seed pack without a check of the signature.
  private func open(_ folder: String) throws(NetOptError) -> SeedPack {
    try SeedPack(folder, check: { _, _ throws(NetOptError) in }) { [warnings] in warnings.add($0) }
  }

  /// The SHA-256 of "hello", in hexadecimal digits.
  private static let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

  /// The JSON of a resource in an index. The key is that of `Samples.key(name)`, and the file with the
  /// body is "NAME.txt".
  private func resource(_ name: String, version: Int? = nil, hash: String = hello) -> String {
    #"{"key":"GET https://a.test/\#(name)","parameters":"q=1","file":"\#(name).txt","sha256":"\#(hash)""#
      + (version.map { #","version":\#($0)"# } ?? "") + #","fields":[["Content-Type","text/plain"]]}"#
  }

  @Test("a seed is found unless a stored entry is as new, by version or by date")
  func seeds() async throws {
    let folder = try pack(
      #"{"schema":1,"issued":1700000000,"resources":[\#(resource("a")),\#(resource("b", version: 7))]}"#,
      ["a.txt": "hello", "b.txt": "hello"])
    let store = tiers(seeds: [try open(folder)])
    let key = try Samples.key("a", partition: "anybody")
    let seed = try #require(await store.entries(for: key).first)
    #expect(
      seed.body == Array("hello".utf8) && seed.key == key && seed.fields["content-type"] == "text/plain")
    #expect(seed.received == 1_700_000_000_000)
    #expect(store.memory.usage.keys == 0)
    #expect(await store.entries(for: try Samples.key("other")).isEmpty)
    // The store returns the seed only if the seed is newer than the stored entry, by date or by version.
    store.insert(Samples.entry(key, body: [1], received: 1_600_000_000_000))
    #expect(await store.entries(for: key).map(\.body) == [Array("hello".utf8)])
    store.insert(Samples.entry(key, body: [1], received: 1_700_000_000_000))
    #expect(await store.entries(for: key).map(\.body) == [[1]])
    let versioned = try Samples.key("b")
    store.insert(Samples.entry(versioned, body: [1], received: 1_800_000_000_000, version: 6))
    #expect(await store.entries(for: versioned).first?.resourceVersion == 7)
    store.insert(Samples.entry(versioned, body: [1], received: 1_800_000_000_000, version: 8))
    #expect(await store.entries(for: versioned).first?.resourceVersion == 8)
    await store.shutdown()
    #expect(warnings.messages.isEmpty)
  }

  @Test("a seed whose file is missing or has another digest is not found, with one warning each")
  func faultySeeds() async throws {
    let folder = try pack(
      #"{"schema":1,"issued":1,"resources":[\#(resource("a")),\#(resource("b"))]}"#, ["a.txt": "hullo"])
    let pack = try open(folder)
    for name in ["a", "b", "a"] {
      let isThere = await pack.entry(for: try Samples.key(name)) != nil
      #expect(!isThere)
    }
    #expect(warnings.messages.count == 2)
    #expect(warnings.messages[0].contains("a.txt cannot be used: its SHA-256 differs from the one in"))
    #expect(warnings.messages[1].contains("b.txt cannot be read: No such file"))
  }

  @Test("calls that need a seed at the same time read and check its file once")
  func concurrentSeeds() async throws {
    let index = #"{"schema":1,"issued":1,"resources":[\#(resource("a")),\#(resource("b"))]}"#
    let pack = try open(try pack(index, ["a.txt": "hello", "b.txt": "hullo"]))
    let (good, bad) = (try Samples.key("a"), try Samples.key("b"))
    let found = await withTaskGroup(of: (Bool, Bool).self) { group in
      for _ in 0..<50 {
        group.addTask { (await pack.entry(for: good) != nil, await pack.entry(for: bad) != nil) }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(found.count == 50 && found.allSatisfy { $0 == (true, false) })
    #expect(warnings.messages.count == 1)
  }

  @Test(
    "a faulty index is refused with a message that names fault and folder",
    arguments: [
      ("{", "it is not JSON"), (#"{"schema":1}"#, "$.issued is missing"),
      (#"{"schema":2,"issued":1,"resources":[]}"#, "its schema is 2, not 1"),
      (#"{"schema":1,"issued":-1,"resources":[]}"#, "$.issued is not a date"),
      (#"{"schema":1,"issued":253402300800,"resources":[]}"#, "$.issued is not a date"),
      (#"{"schema":1,"issued":9223372036854775807,"resources":[]}"#, "$.issued is not a date"),
      (#"{"schema":1,"issued":1,"resources":[{"key":1}]}"#, "$.resources[0].key is not a string"),
      (
        #"{"schema":1,"issued":1,"resources":[{"key":"a","file":"../x","sha256":""}]}"#,
        "leads out of the folder"
      ),
      (
        #"{"schema":1,"issued":1,"resources":[{"key":"a","file":"/x","sha256":""}]}"#,
        "leads out of the folder"
      ),
      (
        #"{"schema":1,"issued":1,"resources":[{"key":"a","file":"x","sha256":""},{"key":"a","file":"y","sha256":""}]}"#,
        "twice"
      ),
      (
        #"{"schema":1,"issued":1,"resources":[{"key":"a","file":"x","sha256":"","fields":[["a"]]}]}"#, "pairs"
      ),
    ])
  func faultyIndex(index: String, reason: String) throws {
    let folder = try pack(index)
    let error = #expect(throws: NetOptError.self) { try open(folder) }
    #expect(error?.message.contains(reason) ?? false, "\(error?.message ?? "")")
    #expect(error?.message.contains(folder) ?? false)
  }

  /// Foundation's decoder accepts such an index. The run consists of combining marks, with which the
  /// decoder is slow (`SlowText`).
  @Test("an index in UTF-16 or UTF-32, or with a long run in a string, is refused")
  func slowIndex() throws {
    let index = #"{"schema":1,"issued":1,"resources":[\#(resource("a"))]}"#
    #expect(throws: Never.self) { try open(try pack(index, ["a.txt": "hello"])) }
    for bytes in WideJSON.encodings(of: Array(index.utf8)) {
      let folder = try pack("", ["a.txt": "hello"])
      try Data(bytes).write(to: URL(fileURLWithPath: folder + "/index.json"))
      let error = #expect(throws: NetOptError.self) { try open(folder) }
      #expect(error?.message.contains("not UTF-8") == true)
    }
    let run = index.replacing("q=1", with: String(repeating: "\u{301}", count: 31))
    let error = #expect(throws: NetOptError.self) { try open(try pack(run, ["a.txt": "hello"])) }
    #expect(error?.message.contains("combining marks") == true)
  }

  @Test("the signature of an index is checked before the index is parsed")
  func signedIndex() throws {
    // The index is not JSON. So an error of the parser would show that the parser came first.
    let folder = try pack("{", ["index.json.minisig": "signed"])
    let error = #expect(throws: NetOptError.self) {
      try SeedPack(
        folder,
        check: { index, signature throws(NetOptError) in
          #expect(index == Array("{".utf8) && signature == Array("signed".utf8))
          throw NetOptError(.invalidSignature, phase: .cache, "not by anybody we trust")
        }
      ) { _ in }
    }
    #expect(error?.code == .invalidSignature)
  }
}
