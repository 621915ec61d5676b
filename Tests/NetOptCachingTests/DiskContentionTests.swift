import Dispatch
import Glibc
import NetOptCore
import NetOptLocking
import NetOptSQLite
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCaching

/// Other processes lock the database or the directory: no call waits for long, and no removal is lost.
struct DiskContentionTests {
  /// The directory of the cache. It does not exist until a store creates it.
  let directory: String
  let warnings = Warnings()

  init() throws { directory = try TemporaryDirectory.make("disk-contention") + "/cache" }

  /// A store that waits at most 200 ms for a lock. After a wait in vain, it does not use the directory for
  /// the duration `pause`.
  private func store(pause: Duration = .zero) -> DiskStore {
    DiskStore(directory, patience: 200, pause: pause) { [warnings] in warnings.add($0) }
  }

  /// Takes the directory's lock, as another process would.
  ///
  /// - Returns: the descriptor of the lock file. Closing it releases the lock.
  private func holdDirectory() throws -> Int32 {
    let lock = open(directory + "/lock", O_RDWR | O_CLOEXEC)
    try #require(flock(lock, LOCK_EX) == 0)
    return lock
  }

  /// Stores `count` small entries, and the entry "large", whose body has a file.
  private func fill(_ count: Int) throws {
    let store = store()
    for number in 0..<count { store.insert(Samples.entry(try Samples.key("\(number)"))) }
    store.insert(Samples.entry(try Samples.key("large"), body: [UInt8](repeating: 9, count: 200_000)))
    store.close()
  }

  @Test("while another process writes, reads work, and no outdated entry is found after a failed insertion")
  func longWriter() throws {
    try fill(1)
    let database = try Database(directory + "/responses.db")
    try database.execute("BEGIN IMMEDIATE")
    let store = store()
    let key = try Samples.key("a")
    // The store can open and read the database while another connection holds the write lock. It cannot
    // remove orphaned body files then, so the next process that opens the database removes them.
    #expect(store.entries(for: try Samples.key("0")).count == 1)
    try database.execute("COMMIT")
    #expect(store.entries(for: try Samples.key("0")).count == 1)
    try database.execute("BEGIN IMMEDIATE")
    store.insert(Samples.entry(key))
    // The insertion of a new key fails. It would have replaced no entry, so it affects no other look-up.
    #expect(store.entries(for: try Samples.key("0")).count == 1)
    // This failed insertion would have replaced an entry. Until the store has removed that entry, every
    // look-up is a miss. There is no warning.
    store.insert(Samples.entry(try Samples.key("0"), received: 1_700_000_000_001))
    #expect(store.entries(for: try Samples.key("large")).isEmpty)
    try database.execute("COMMIT")
    #expect(store.entries(for: try Samples.key("0")).isEmpty)
    #expect(store.entries(for: try Samples.key("large")).count == 1)
    store.insert(Samples.entry(key))
    #expect(store.entries(for: key).count == 1)
    #expect(warnings.messages.isEmpty)
  }

  @Test(
    "a removal that fails while the database is locked is done before the next look-up",
    arguments: ["entry", "key", "everything"])
  func failedRemoval(kind: String)
    throws
  {
    try fill(2)
    let store = store()
    let key = try Samples.key("0")
    let entry = try #require(store.entries(for: key).first)
    let database = try Database(directory + "/responses.db")
    try database.execute("BEGIN IMMEDIATE")
    switch kind {
    case "entry": store.remove(entry)
    case "key": store.removeAll(for: key)
    default: store.removeAll()
    }
    try database.execute("COMMIT")
    #expect(store.entries(for: key).isEmpty)
    #expect(store.entries(for: try Samples.key("1")).count == (kind == "everything" ? 0 : 1))
    store.insert(entry)
    #expect(store.entries(for: key).count == 1)
    #expect(warnings.messages.isEmpty)
  }

  @Test("the store does not use a busy database during the pause, and close does the removals")
  func busyDatabase() throws {
    try fill(1)
    let store = store(pause: .seconds(3600))
    let key = try Samples.key("0")
    #expect(store.entries(for: key).count == 1)
    let database = try Database(directory + "/responses.db")
    try database.execute("BEGIN IMMEDIATE")
    store.insert(Samples.entry(try Samples.key("a")))
    try database.execute("COMMIT")
    #expect(store.entries(for: try Samples.key("large")).isEmpty)
    // The store does not perform this removal yet, because it is in the pause. `close` ends the pause and
    // performs the removal.
    store.removeAll(for: key)
    store.close()
    #expect(try DiskInspection(directory).usage().entries == 1)
    #expect(store.entries(for: try Samples.key("large")).count == 1)
    #expect(warnings.messages.isEmpty)
  }

  /// Nothing is stored for the new keys, so a failed insertion leaves no pending removal. More than
  /// `mostKeys` pending removals would become the removal of all entries.
  @Test("failed insertions of many new keys remove no stored entries")
  func failedInsertions() throws {
    try fill(1)
    let store = store(pause: .seconds(3600))
    let kept = try Samples.key("0")
    #expect(store.entries(for: kept).count == 1)
    let database = try Database(directory + "/responses.db")
    try database.execute("BEGIN IMMEDIATE")
    for number in 0...PendingRemovals.mostKeys {
      store.insert(Samples.entry(try Samples.key("new \(number)")))
    }
    try database.execute("COMMIT")
    store.close()
    #expect(store.entries(for: kept).count == 1)
    #expect(warnings.messages.isEmpty)
  }

  /// Another process holds the lock of the directory. The store works again after the lock is released.
  @Test("one call waits for a locked directory, later calls do not, and there is one warning")
  func heldLock() throws {
    try fill(1)
    let descriptor = open(directory + "/lock", O_RDWR | O_CLOEXEC)
    defer { close(descriptor) }
    try #require(flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    let store = store(pause: .seconds(3600))
    let key = try Samples.key("0")
    let clock = ContinuousClock()
    let first = clock.measure { #expect(store.entries(for: key).isEmpty) }
    #expect(first >= .milliseconds(200) && first < .seconds(10), "\(first)")
    let others = try clock.measure {
      for number in 0..<100 {
        #expect(store.entries(for: key).isEmpty)
        store.insert(Samples.entry(try Samples.key("new \(number)")))
      }
    }
    // If each of the 200 calls waited for 200 ms, they would take 40 s together.
    #expect(others < .seconds(10), "\(others)")
    #expect(warnings.messages.count == 1, "\(warnings.messages)")
    #expect(warnings.messages[0].contains("/lock has been locked by another process for more than 200 ms"))
    #expect(warnings.messages[0].hasSuffix("caches nothing on disk until that process releases the lock"))
    flock(descriptor, LOCK_UN)
    // Closing the store ends the pause.
    store.close()
    #expect(store.entries(for: key).count == 1)
    store.insert(Samples.entry(try Samples.key("new")))
    #expect(store.entries(for: try Samples.key("new")).count == 1)
    #expect(warnings.messages.count == 1)
  }

  /// During the inspections, another task inserts entries all the time, and the store evicts older ones.
  @Test("an inspection of a store that is being written finds no fault")
  func inspectionDuringWrites() async throws {
    let isDone = Locked(false)
    let written = Locked(0)
    let store = DiskStore(directory, limits: CacheLimits(maxBytes: 4 << 20)) { [warnings] in warnings.add($0)
    }
    store.open()
    let writer = Task.detached {
      var number = 0
      while !isDone.withLock(\.self) {
        let key = try Samples.key("\(number % 100)")
        store.insert(Samples.entry(key, body: [UInt8](repeating: UInt8(number & 255), count: 150_000)))
        number += 1
        written.withLock { $0 += 1 }
      }
    }
    defer { isDone.withLock { $0 = true } }
    var entries = 0
    // Continues until the task has inserted ten times as much as there is room for, and the inspections have
    // checked more than 20 entries.
    while written.withLock(\.self) < 300 || entries <= 20 {
      let result = try DiskInspection(directory).verify()
      #expect(result.isSound, "\(result)")
      entries += result.entries
    }
    isDone.withLock { $0 = true }
    try await writer.value
    store.close()
    #expect(warnings.messages.isEmpty, "\(warnings.messages)")
  }

  @Test("pending removals of more than mostKeys keys become the removal of all entries")
  func tooManyKeys() throws {
    var removals = PendingRemovals()
    for number in 0..<PendingRemovals.mostKeys { removals.add(.entries(of: try Samples.key("\(number)"))) }
    removals.add(.entries(of: try Samples.key("0")))
    #expect(removals.keys.count == PendingRemovals.mostKeys && !removals.isEverything)
    removals.add(.entries(of: try Samples.key("one more")))
    removals.add(.entries(of: try Samples.key("another")))
    #expect(removals.keys.isEmpty && removals.isEverything && !removals.isEmpty)
  }

  /// Another process may have removed the damaged row and reused its id for a new row.
  @Test("removing a damaged row spares a new row with the same id")
  func reusedRowID() throws {
    try fill(1)
    let connection = try DiskConnection(
      DiskDirectory(directory, mayCreate: true), mayCreate: true, patience: 200)
    let inline = try Statement("SELECT id, checksum FROM entries WHERE file IS NULL", in: connection.database)
    let (id, checksum) = try #require(try inline.rows { ($0.integer(0), $0.bytes(1)) }.first)
    // The first checksum stands for that of a damaged row which another process has already removed. The row
    // that now has its id must stay. The second checksum is that of the row, which is removed.
    for (sum, left) in [([UInt8](repeating: 1, count: 16), 1), (checksum, 0)] {
      try connection.deleteDamaged(
        .init(id: id, selectors: [], head: [], checksum: sum, file: nil, length: 0, body: []))
      let count = try Statement("SELECT count(*) FROM entries WHERE file IS NULL", in: connection.database)
        .integer()
      #expect(count == Int64(left))
    }
  }

  @Test("a slow look-up is a miss, later ones are misses at once, and a free database is used again")
  func patience() async throws {
    try fill(1)
    let key = try Samples.key("0")
    let lock = try holdDirectory()
    defer { close(lock) }
    let store = DiskStore(directory, patience: 20_000, pause: .zero) { [warnings] in warnings.add($0) }
    let tiers = TieredStore(memory: MemoryStore(CacheLimits(maxBytes: 100_000)), disk: DiskCache(store))
    let start = ContinuousClock.now
    #expect(await tiers.entries(for: key, within: .milliseconds(50)).isEmpty)
    // The first look-up still waits for the lock. These look-ups would have to wait for the first one, so
    // they are misses at once.
    for _ in 0..<1000 { #expect(await tiers.entries(for: key, within: .seconds(20)).isEmpty) }
    #expect(start.duration(to: .now) < .seconds(10))
    #expect(flock(lock, LOCK_UN) == 0)
    var found = 0
    try await wait(for: "the disk to be used again") {
      found = await tiers.entries(for: key).count
      return found > 0
    }
    #expect(found == 1)
    await tiers.shutdown()
  }

  @Test("removals that wait for a hung disk use bounded memory and are done when it is back")
  func floodWhileHeld() async throws {
    try fill(3)
    let kept = try Samples.key("kept")
    let cache = DiskCache(
      DiskStore(directory, pause: .zero) { [warnings] in warnings.add($0) }, mostWaiting: 1 << 20)
    // Blocks the thread of the cache until `isBack` is signalled, as a disk would that hangs.
    let isBack = DispatchSemaphore(value: 0)
    let hung = Task { await cache.run { isBack.wait() } }
    let name = String(repeating: "x", count: 1000)
    let before = ProcessFootprint.now.memoryBytes
    for number in 0..<60_000 {
      let key = try Samples.key("\(name)\(number)")
      if number.isMultiple(of: 2) { cache.removeAll(for: key) } else { cache.remove(Samples.entry(key)) }
    }
    for number in 0..<3 { cache.removeAll(for: try Samples.key("\(number)")) }
    // Without a limit, the names of the 60,000 keys alone would take 60 MB.
    #expect(ProcessFootprint.now.memoryBytes - before < 30 << 20)
    isBack.signal()
    _ = await hung.value
    await cache.flush()
    for number in 0..<3 { #expect(await cache.entries(for: try Samples.key("\(number)")).isEmpty) }
    cache.insert(Samples.entry(kept))
    #expect(await cache.entries(for: kept).count == 1)
    await cache.shutdown()
  }

  @Test("shutdown does not wait for a hung disk, and pending calls return")
  func shutdownWhileHeld() async throws {
    try fill(1)
    let key = try Samples.key("0")
    let lock = try holdDirectory()
    defer { close(lock) }
    let cache = DiskCache(
      DiskStore(directory, patience: 60_000, pause: .zero) { [warnings] in warnings.add($0) })
    let start = ContinuousClock.now
    #expect(await cache.entries(for: key, within: .milliseconds(20)).isEmpty)
    cache.insert(Samples.entry(key))
    let flush = Task { await cache.flush() }
    let eviction = Task { await cache.eviction(of: key) }
    await cache.shutdown(within: .milliseconds(50))
    await flush.value
    #expect(await eviction.value == nil)
    #expect(await cache.entries(for: key).isEmpty)
    #expect(start.duration(to: .now) < .seconds(30))
    // The disk thread ends when it gets the lock.
    #expect(flock(lock, LOCK_UN) == 0)
  }
}
