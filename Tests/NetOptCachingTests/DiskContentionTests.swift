import NetOptCore
import NetOptSQLite
import NetOptTestSupport
import Testing

@testable import NetOptCaching

/// Other processes that have the database when it is needed: nobody waits for them for long, and nothing is lost that must not
/// be.
struct DiskContentionTests {
  let directory: String
  let warnings = Warnings()

  init() throws { directory = try TemporaryDirectory.make("disk-contention") + "/cache" }

  private func store(rest: Duration = .zero) -> DiskStore {
    DiskStore(directory, patience: 200, rest: rest) { [warnings] in warnings.add($0) }
  }

  /// Keeps so many small entries, and a large one.
  private func fill(_ count: Int) throws {
    let store = store()
    for number in 0..<count { store.insert(Samples.entry(try Samples.key("\(number)"))) }
    store.insert(Samples.entry(try Samples.key("large"), body: [UInt8](repeating: 9, count: 200_000)))
    store.close()
  }

  @Test func anotherProcessThatWritesForLong() throws {
    try fill(1)
    let database = try Database(directory + "/responses.db")
    try database.execute("BEGIN IMMEDIATE")
    let store = store()
    let key = try Samples.key("a")
    // It reads all the same, and sweeps another time.
    #expect(store.entries(for: try Samples.key("0")).count == 1)
    try database.execute("COMMIT")
    #expect(store.entries(for: try Samples.key("0")).count == 1)
    try database.execute("BEGIN IMMEDIATE")
    store.insert(Samples.entry(key))
    // What the entry would have taken the place of must go first; until then everything is a miss, and nothing is said.
    #expect(store.entries(for: try Samples.key("0")).isEmpty)
    try database.execute("COMMIT")
    #expect(store.entries(for: try Samples.key("0")).count == 1)
    store.insert(Samples.entry(key))
    #expect(store.entries(for: key).count == 1)
    #expect(warnings.messages.isEmpty)
  }

  @Test(arguments: ["entry", "key", "everything"]) func whatCouldNotBeForgottenIsForgottenLater(kind: String)
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

  @Test func aBusyDatabaseIsLeftAloneForAWhile() throws {
    try fill(1)
    let store = store(rest: .seconds(3600))
    let key = try Samples.key("0")
    #expect(store.entries(for: key).count == 1)
    let database = try Database(directory + "/responses.db")
    try database.execute("BEGIN IMMEDIATE")
    store.insert(Samples.entry(try Samples.key("a")))
    try database.execute("COMMIT")
    #expect(store.entries(for: try Samples.key("large")).isEmpty)
    // What is to be forgotten meanwhile is, at the latest when the store is closed.
    store.removeAll(for: key)
    store.close()
    #expect(try DiskInspection(directory).usage().entries == 1)
    #expect(store.entries(for: try Samples.key("large")).count == 1)
    #expect(warnings.messages.isEmpty)
  }

  @Test func moreKeysThanAreKeptAreEverything() throws {
    var owed = OwedRemovals()
    for number in 0..<OwedRemovals.mostKeys { owed.add(.entries(of: try Samples.key("\(number)"))) }
    owed.add(.entries(of: try Samples.key("0")))
    #expect(owed.keys.count == OwedRemovals.mostKeys && !owed.isEverything)
    owed.add(.entries(of: try Samples.key("one more")))
    owed.add(.entries(of: try Samples.key("another")))
    #expect(owed.keys.isEmpty && owed.isEverything && !owed.isEmpty)
  }

  /// Another process may have removed the row that was found damaged, and begun another one with its number.
  @Test func aNumberThatIsUsedAgainIsNotDamaged() throws {
    try fill(1)
    let connection = try DiskConnection(
      DiskDirectory(directory, mayCreate: true), mayCreate: true, patience: 200)
    let inline = try Statement("SELECT id, checksum FROM entries WHERE file IS NULL", in: connection.database)
    let (id, checksum) = try #require(try inline.rows { ($0.integer(0), $0.bytes(1)) }.first)
    for (sum, left) in [([UInt8](repeating: 1, count: 16), 1), (checksum, 0)] {
      try connection.deleteDamaged(
        .init(id: id, selectors: [], head: [], checksum: sum, file: nil, length: 0, body: []))
      let count = try Statement("SELECT count(*) FROM entries WHERE file IS NULL", in: connection.database)
        .integer()
      #expect(count == Int64(left))
    }
  }
}
