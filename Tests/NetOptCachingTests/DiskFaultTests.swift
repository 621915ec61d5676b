import FoundationEssentials
import Glibc
import NetOptCrypto
import NetOptSQLite
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCaching
@testable import NetOptCore

/// Faults of disks and databases: no call of a store fails because of them, and the store reports each kind
/// of fault once.
struct DiskFaultTests {
  /// A temporary directory. It contains the cache directory, and other files of a test.
  let parent: String
  /// The cache directory. It does not exist until a store or a test creates it.
  let directory: String
  let warnings = Warnings()

  init() throws {
    parent = try TemporaryDirectory.make("disk-faults")
    directory = parent + "/cache"
  }

  /// A store that waits at most 200 ms for a lock, and makes no pause after a fault.
  func store(_ directory: String? = nil) -> DiskStore {
    DiskStore(directory ?? self.directory, patience: 200, pause: .zero) { [warnings] in warnings.add($0) }
  }

  /// Calls every method of a store that cannot use its directory. Each look-up must be a miss.
  func useInVain(_ store: DiskStore) throws {
    let key = try Samples.key("a")
    for _ in 0..<3 {
      store.open()
      store.insert(Samples.entry(key))
      store.insert(Samples.entry(key, body: [UInt8](repeating: 1, count: 200_000)))
      #expect(store.entries(for: key).isEmpty)
      store.remove(Samples.entry(key))
      store.removeAll(for: key)
      store.removeAll()
      store.flush()
      store.close()
    }
  }

  /// Stores `count` entries with bodies of 3000 bytes, and the entry "large", whose body has a file.
  func fill(_ count: Int = 40) throws {
    let store = store()
    for number in 0..<count {
      store.insert(
        Samples.entry(try Samples.key("\(number)"), body: [UInt8](repeating: UInt8(number), count: 3000)))
    }
    store.insert(Samples.entry(try Samples.key("large"), body: [UInt8](repeating: 9, count: 200_000)))
    store.close()
  }

  private func write(_ bytes: [UInt8], to path: String) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path))
  }

  private func read(_ path: String) throws -> [UInt8] {
    // Data(contentsOf:) leaks 4 KiB for each empty file on Linux.
    try FileBytes.read(path, upTo: 1 << 24, as: "a file", in: .cache)
  }

  @Test("a file in the place of the directory causes one warning and stays as it is")
  func fileAsDirectory() throws {
    try write([1], to: directory)
    try useInVain(store())
    #expect(warnings.messages.count == 1)
    #expect(warnings.messages[0].contains("is not a directory; netopt caches nothing on disk"))
    #expect(try read(directory) == [1])
  }

  @Test("a directory that cannot be created causes one warning")
  func uncreatableDirectory() throws {
    try useInVain(store("/proc/none/cache"))
    #expect(warnings.messages.count == 1, "\(warnings.messages)")
  }

  @Test("a directory that others may write to causes one warning and stays empty")
  func sharedDirectory() throws {
    mkdir(directory, 0o700)
    chmod(directory, 0o777)
    try useInVain(store())
    #expect(warnings.messages.count == 1)
    #expect(warnings.messages[0].contains("chmod go-w"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
  }

  @Test(
    "a directory of another user causes one warning",
    .enabled(if: geteuid() == 0, "a directory is given to somebody else, which takes root"))
  func foreignDirectory() throws {
    mkdir(directory, 0o700)
    chown(directory, 4711, 4711)
    try useInVain(store())
    #expect(warnings.messages.count == 1)
    #expect(warnings.messages[0].contains("belongs to another user"))
  }

  @Test("a symbolic link in the place of the directory is not followed")
  func linkAsDirectory() throws {
    let target = parent + "/target"
    mkdir(target, 0o700)
    symlink(target, directory)
    try useInVain(store())
    #expect(warnings.messages.count == 1)
    #expect(warnings.messages[0].contains("symbolic link"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: target).isEmpty)
  }

  @Test(
    "symbolic links inside the directory are not followed", arguments: ["responses.db", "lock", "bodies"])
  func linksInside(name: String) throws {
    let target = parent + "/target"
    if name == "bodies" { mkdir(target, 0o700) } else { try write([], to: target) }
    mkdir(directory, 0o700)
    symlink(target, "\(directory)/\(name)")
    try useInVain(store())
    #expect(warnings.messages.count == 1, "\(warnings.messages)")
    if name != "bodies" { #expect(try read(target).isEmpty) }
  }

  @Test("a directory below a symbolic link is used")
  func linkAbove() throws {
    mkdir(parent + "/target", 0o700)
    symlink(parent + "/target", parent + "/link")
    let store = store(parent + "/link/cache")
    let key = try Samples.key("a")
    store.insert(Samples.entry(key))
    #expect(store.entries(for: key).count == 1)
    #expect(warnings.messages.isEmpty)
  }

  /// Damages one place of the database, a multiple of 8 KiB, and uses a store. Repeats this for each such
  /// place with a new copy of the intact database.
  @Test(
    "a damaged database yields no wrong entries, and the store goes on with one warning at most",
    arguments: ["zeros", "ones", "noise", "cut", "text", "empty"])
  func brokenDatabase(kind: String)
    throws
  {
    try fill()
    let database = directory + "/responses.db"
    let good = try read(database)
    var random = SplitMix64(seed: 3)
    for offset in stride(from: 0, to: good.count, by: 8192) {
      var bytes = good
      let range = offset..<min(offset + 8192, good.count)
      switch kind {
      case "zeros": bytes.replaceSubrange(range, with: [UInt8](repeating: 0, count: range.count))
      case "ones": bytes.replaceSubrange(range, with: [UInt8](repeating: 255, count: range.count))
      case "noise":
        for _ in 0..<20 { bytes[range.lowerBound + Int(random.below(UInt64(range.count)))] ^= 0x41 }
      case "cut": bytes.removeSubrange((offset + 100)...)
      case "text": bytes = Array("this is no database, but a text of some length\n".utf8)
      default: bytes = []
      }
      try write(bytes, to: database)
      unlink(database + "-wal")
      unlink(database + "-shm")
      let warnings = Warnings()
      let store = DiskStore(directory) { warnings.add($0) }
      for number in 0..<40 {
        let found = store.entries(for: try Samples.key("\(number)"))
        #expect(found.allSatisfy { $0.body == [UInt8](repeating: UInt8(number), count: 3000) })
      }
      for number in 0..<10 {
        let key = try Samples.key("new \(number)")
        store.insert(Samples.entry(key, body: [UInt8](repeating: 3, count: 20_000)))
      }
      // When the store finds the damage, it creates a new database. Earlier insertions are lost then. After
      // so many insertions, this one must succeed.
      let key = try Samples.key("last")
      store.insert(Samples.entry(key))
      #expect(store.entries(for: key).count == 1, "\(kind) at \(offset): \(warnings.messages)")
      #expect(warnings.messages.count <= 1, "\(warnings.messages)")
      store.close()
      if kind == "text" {
        #expect(warnings.messages.first?.contains("file is not a database") ?? false, "\(warnings.messages)")
        #expect(try read(database + ".broken") == bytes)
      }
      // These kinds of damage replace the whole file, so they are the same at each offset.
      if kind == "text" || kind == "empty" { return }
    }
  }

  @Test("a damaged write-ahead log yields no wrong entries, and the store still works")
  func brokenLog() throws {
    let store = store()
    for number in 0..<40 { store.insert(Samples.entry(try Samples.key("\(number)"))) }
    let log = directory + "/responses.db-wal"
    let good = try read(log)
    // A process that is killed leaves entries in the write-ahead log. `close` moves them to the database and
    // empties the log. So the test copies both files before the call, and restores them afterwards.
    let database = try read(directory + "/responses.db")
    store.close()
    for offset in stride(from: 0, to: good.count, by: max(good.count / 20, 1)) {
      var bytes = good
      for index in offset..<min(offset + 500, good.count) { bytes[index] ^= 0x55 }
      try write(database, to: directory + "/responses.db")
      try write(bytes, to: log)
      unlink(directory + "/responses.db-shm")
      let again = self.store()
      for number in 0..<40 {
        #expect(
          again.entries(for: try Samples.key("\(number)")).allSatisfy { $0.body == Array("hello".utf8) })
      }
      // The first insertion is lost if the store finds the damage only afterwards. The second one must
      // succeed.
      let key = try Samples.key("last")
      again.insert(Samples.entry(key))
      again.insert(Samples.entry(key))
      #expect(again.entries(for: key).count == 1)
      again.close()
    }
  }

  @Test(
    "an entry with a changed column is not found, and a changed received column has no effect",
    arguments: ["text", "selectors", "head", "checksum", "body", "owner", "length", "received"])
  func changedRow(column: String) throws {
    try fill(3)
    let database = try Database(directory + "/responses.db")
    // Adds 1 to a number. In any other column, the byte 0xee replaces the last byte; an empty value becomes
    // this byte.
    let change =
      column == "received" || column == "length"
      ? "\(column) + 1"
      : "CAST(coalesce(substr(\(column), 1, length(\(column)) - 1), x'') || x'ee' AS BLOB)"
    try database.execute("UPDATE entries SET \(column) = \(change) WHERE file IS NULL")
    let store = store()
    for number in 0..<3 {
      let found = store.entries(for: try Samples.key("\(number)"))
      // The column `head` contains the time of receipt too. The entry gets this time, not that of the column
      // `received`.
      #expect(found.count == (column == "received" ? 1 : 0))
      #expect(found.allSatisfy { $0.received == 1_700_000_000_000 })
    }
    let left = try Statement("SELECT count(*) FROM entries WHERE file IS NULL", in: database).integer()
    // The store removes a row whose checksum is wrong when a look-up finds the row. With a changed text or
    // owner, the row belongs to another key, and these look-ups do not find it.
    #expect(left == (["text", "owner", "received"].contains(column) ? 3 : 0), "\(column)")
    #expect(warnings.messages.isEmpty)
  }

  @Test(
    "an entry whose body file is damaged, missing or not a regular file is removed",
    arguments: ["changed", "cut", "longer", "gone", "link", "directory", "fifo"])
  func brokenBodyFile(
    kind: String
  ) throws {
    try fill(1)
    let bodies = directory + "/bodies"
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: bodies).first)
    let path = "\(bodies)/\(name)"
    var bytes = try read(path)
    switch kind {
    case "changed": bytes[100_000] ^= 1
    case "cut": bytes.removeLast()
    case "longer": bytes.append(9)
    default: break
    }
    unlink(path)
    switch kind {
    case "gone": break
    case "link":
      try write(bytes, to: parent + "/elsewhere")
      symlink(parent + "/elsewhere", path)
    case "directory": mkdir(path, 0o700)
    // No process writes to this FIFO, so opening it in blocking mode would never return.
    case "fifo": mkfifo(path, 0o600)
    default: try write(bytes, to: path)
    }
    let store = store()
    #expect(store.entries(for: try Samples.key("large")).isEmpty)
    #expect(try DiskInspection(directory).usage().files == 0)
    #expect(store.entries(for: try Samples.key("0")).count == 1)
    if kind == "link" { #expect(try read(parent + "/elsewhere").count == 200_000) }
  }

  @Test("opening the store removes orphaned body files, but no temporary files in use and no other files")
  func orphans() throws {
    try fill(1)
    let bodies = directory + "/bodies"
    let orphan = String(repeating: "a", count: 32)
    try write([1], to: "\(bodies)/\(orphan)")
    try write([1], to: "\(bodies)/\(orphan.replacing("a", with: "b")).part")
    try write([1], to: "\(bodies)/README")
    // A temporary file that a living process is writing.
    let files = BodyFiles(directory: bodies)
    let file = try files.write([1, 2, 3])
    let name = file.name
    store().open()
    // The third file is the body of the entry "large".
    let left = Set(try FileManager.default.contentsOfDirectory(atPath: bodies))
    #expect(left.count == 3 && left.contains("README") && left.contains(name + ".part"))
    files.discard(file)
  }

  @Test("a full disk causes one warning, and the store writes again when there is room")
  func fullDisk() throws {
    // Limits the file size of this process to 150 kB during the test, and ignores the signal at the limit.
    try fill(1)
    signal(SIGXFSZ, SIG_IGN)
    var before = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before)
    var low = rlimit(rlim_cur: 150_000, rlim_max: before.rlim_max)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &low)
    defer { setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before) }
    let store = store()
    for number in 0..<60 {
      let key = try Samples.key("full \(number)")
      store.insert(Samples.entry(key, body: [UInt8](repeating: 1, count: number % 3 == 0 ? 180_000 : 30_000)))
      #expect(store.entries(for: key).allSatisfy { $0.body.first == 1 })
    }
    #expect(warnings.messages.count == 1, "\(warnings.messages)")
    #expect(warnings.messages.first?.hasSuffix("does not cache new responses on disk meanwhile") ?? false)
    #expect(store.entries(for: try Samples.key("0")).count == 1)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before)
    let key = try Samples.key("room again")
    store.insert(Samples.entry(key, body: [UInt8](repeating: 1, count: 180_000)))
    #expect(store.entries(for: key).count == 1)
    store.close()
    #expect(try DiskInspection(directory).verify().isSound)
  }

  /// A fault of memory can change a date before the checksum is computed. The checksum of the head is valid
  /// then, so the decoding must check the dates.
  @Test("a head with dates out of bounds is not decoded, and an endless expiry is the end of year 9999")
  func extremeDates() throws {
    let entry = Samples.entry(try Samples.key("a"), expiry: .max)
    let head = EntryCoding.head(of: entry)
    func decoded(_ head: [UInt8]) -> CacheEntry? {
      EntryCoding.entry(entry.key, selectors: [], head: head, body: entry.body)
    }
    // The maximum expiry becomes the end of the year 9999.
    #expect(decoded(head)?.declaredExpiry == 253_402_300_799_999)
    // The status takes the first 8 bytes. The times of request and receipt follow, 8 bytes each,
    // little-endian. The change concerns the highest byte of a time.
    for offset in [8, 16] {
      for byte: UInt8 in [0x7f, 0x80, 0xff] {
        var damaged = head
        damaged[offset + 7] = byte
        #expect(decoded(damaged) == nil)
      }
    }
  }

  @Test("an inspection rejects an empty database file and does not change it")
  func inspectedEmptyFile() throws {
    mkdir(directory, 0o700)
    let database = directory + "/responses.db"
    try write([], to: database)
    let error = #expect(throws: NetOptError.self) { try DiskInspection(directory) }
    #expect(error?.message.contains("has a schema that this version of netopt does not know") ?? false)
    #expect(try read(database).isEmpty)
    #expect(!FileManager.default.fileExists(atPath: database + "-wal"))
  }

  @Test("the store creates its directory again after it was removed")
  func removedDirectory() throws {
    let store = store()
    let key = try Samples.key("a")
    store.insert(Samples.entry(key))
    try FileManager.default.removeItem(atPath: directory)
    #expect(store.entries(for: key).isEmpty)
    store.insert(Samples.entry(key))
    #expect(store.entries(for: key).count == 1)
    #expect(FileManager.default.fileExists(atPath: directory + "/responses.db"))
    #expect(warnings.messages.isEmpty)
  }

  /// An example is a disk that is mounted read-only. If `isFilled` is true, the directory has a cache.
  @Test(
    "an unwritable directory causes one warning, and is used once it is writable",
    arguments: [false, true])
  func unwritableDirectory(isFilled: Bool) throws {
    if isFilled { try fill(2) } else { mkdir(directory, 0o700) }
    // Root may write to any file. So a test that runs as root takes the rights of another user meanwhile.
    let nobody: uid_t = 65_534
    let isRoot = geteuid() == 0
    // The paths whose permissions change, with their new permissions: first `parent` and `directory`, then
    // the files in the directory, which become read-only.
    var rights: [(path: String, mode: mode_t)] = [(parent, 0o711), (directory, 0o500)]
    for name in (try? FileManager.default.subpathsOfDirectory(atPath: directory)) ?? [] {
      let path = "\(directory)/\(name)"
      rights.append((path, name == "bodies" ? 0o500 : 0o400))
    }
    for (path, mode) in rights {
      if isRoot, path != parent { chown(path, nobody, nobody) }
      chmod(path, mode)
    }
    defer { chmod(directory, 0o700) }
    // The folders above `parent` that other users may not pass, with their permissions. Other users may pass
    // them during the test. At the end, the permissions are restored.
    var closed: [(path: String, mode: mode_t)] = []
    defer { for (path, mode) in closed { chmod(path, mode) } }
    let folders = sequence(first: parent) { $0 == "/" ? nil : FileBytes.folder(of: $0) }
    for folder in folders where isRoot {
      guard let mode = Self.mode(folder), mode & 0o011 != 0o011 else { continue }
      closed.append((folder, mode))
      chmod(folder, mode | 0o011)
    }
    let before = try FileManager.default.subpathsOfDirectory(atPath: directory).sorted()
    if isRoot { try #require(seteuid(nobody) == 0) }
    defer { if isRoot { seteuid(0) } }
    let store = store()
    try useInVain(store)
    #expect(warnings.messages.count == 1, "\(warnings.messages)")
    #expect(warnings.messages[0].contains(directory) || warnings.messages[0].contains("disk-faults"))
    #expect(try FileManager.default.subpathsOfDirectory(atPath: directory).sorted() == before)
    // The store uses the repaired directory without a restart.
    chmod(directory, 0o700)
    for (path, mode) in rights.dropFirst(2) { chmod(path, mode | 0o200) }
    let key = try Samples.key("mended")
    store.insert(Samples.entry(key))
    #expect(store.entries(for: key).count == 1)
    #expect(warnings.messages.count == 1)
    store.close()
  }

  /// The permission bits of a folder; `nil` when they cannot be read.
  private static func mode(_ folder: String) -> mode_t? {
    var status = stat()
    return stat(folder, &status) == 0 ? status.st_mode & 0o7777 : nil
  }

  @Test("an entry whose sparse body file has 1 TiB is not found")
  func terabyteBody() throws {
    try fill(1)
    let bodies = directory + "/bodies"
    let file = try #require(try FileManager.default.contentsOfDirectory(atPath: bodies).first)
    #expect(truncate("\(bodies)/\(file)", 1 << 40) == 0)
    try Database(directory + "/responses.db").execute(
      "UPDATE entries SET length = 1 << 40 WHERE file IS NOT NULL")
    let store = store()
    #expect(store.entries(for: try Samples.key("large")).isEmpty)
    #expect(store.entries(for: try Samples.key("0")).count == 1)
    store.close()
  }

  /// A read-only store is one with `mayChange: false`.
  @Test("a read-only store creates no file, removes no entry and counts no hit")
  func readOnlyStore() throws {
    // Looks up a key in a new read-only store.
    func look(_ name: String) throws -> [CacheEntry] {
      let store = DiskStore(directory, pause: .zero, mayChange: false) { [warnings] in warnings.add($0) }
      defer { store.close() }
      return try store.entries(for: Samples.key(name))
    }
    #expect(try look("0").isEmpty)
    #expect(!FileManager.default.fileExists(atPath: directory))
    #expect(warnings.messages.count == 1 && warnings.messages[0].hasSuffix("netopt finds no entries there"))
    mkdir(directory, 0o700)
    #expect(try look("0").isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
    #expect(warnings.messages.last?.contains("has no cache") ?? false)
    try fill(1)
    try Database(directory + "/responses.db").execute("UPDATE entries SET body = x'00' WHERE file IS NULL")
    let before = try DiskInspection(directory).usage()
    #expect(try look("0").isEmpty)
    #expect(try look("large").count == 1)
    #expect(try DiskInspection(directory).usage() == before)
    let text = Array("this is no database, but a text of some length\n".utf8)
    try write(text, to: directory + "/responses.db")
    unlink(directory + "/responses.db-wal")
    #expect(try look("large").isEmpty)
    #expect(try read(directory + "/responses.db") == text)
    #expect(!FileManager.default.fileExists(atPath: directory + "/responses.db.broken"))
  }
}
