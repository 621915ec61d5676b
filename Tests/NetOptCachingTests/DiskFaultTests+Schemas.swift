import FoundationEssentials
import Glibc
import NetOptCrypto
import NetOptSQLite
import TestTools
import Testing

@testable import NetOptCaching
@testable import NetOptCore

/// Databases of other versions, of other programs, and with objects that netopt does not create.
extension DiskFaultTests {
  @Test("a database with an older schema is put aside, with one warning")
  func olderSchema() throws {
    try fill(1)
    try Database(directory + "/responses.db").execute("PRAGMA user_version = 1")
    let store = store()
    #expect(store.entries(for: try Samples.key("0")).isEmpty)
    let key = try Samples.key("a")
    store.insert(Samples.entry(key))
    #expect(store.entries(for: key).count == 1)
    #expect(warnings.messages.count == 1)
    #expect(warnings.messages[0].contains("an older version of netopt; netopt renamed it to"))
    #expect(FileManager.default.fileExists(atPath: directory + "/responses.db.broken"))
  }

  /// The rules decide which request fields are credentials, and so which entries are for one user only. An
  /// entry that was stored under other rules could be served to another user. After a change of the rules,
  /// increase `DiskSchema.version`, and update the version and the digest of the rules in this test.
  @Test("new rules for telling users apart need a new schema version")
  func schemaOfUserRules() throws {
    let rules =
      [CredentialFields(CredentialFields.usual).text] + SecretNames.parts + SecretNames.words
      + SecretNames.names
    var digest: [UInt8] = []
    digest.append(hex: Array(try Digest.of(rules.joined(separator: "\n"), .sha256).prefix(4)))
    #expect("\(DiskSchema.version) \(String(decoding: digest, as: UTF8.self))" == "5 5aabfe9c")
  }

  /// A trigger or a view that another program created may run without end, and such an index may refuse every
  /// row. So the store does not use a database with objects that netopt did not create.
  @Test(
    "a database with other tables, indices, triggers or views is put aside",
    arguments: [
      """
      CREATE TRIGGER endless AFTER INSERT ON entries BEGIN
        INSERT INTO evictions SELECT NULL, x'', x'', x'', 0, '' FROM entries a, entries b, entries c, entries d, entries e, entries f;
      END
      """,
      """
      CREATE TRIGGER endless AFTER UPDATE ON entries BEGIN
        UPDATE entries SET cost = (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n);
      END
      """,
      "DROP TRIGGER entries_added", "DROP INDEX entries_key", "CREATE TABLE more (a)",
      "CREATE VIEW endless AS SELECT * FROM entries a, entries b",
      "ALTER TABLE totals RENAME TO other; CREATE VIEW totals AS SELECT * FROM other",
      "ALTER TABLE entries ADD COLUMN more DEFAULT 1",
      "CREATE UNIQUE INDEX refusing ON entries (owner) WHERE 0",
    ])
  func foreignObjects(change: String) throws {
    try fill(5)
    try Database(directory + "/responses.db").execute(change)
    let store = store()
    #expect(store.entries(for: try Samples.key("0")).isEmpty)
    let key = try Samples.key("a")
    store.insert(Samples.entry(key))
    #expect(store.entries(for: key).count == 1)
    store.close()
    #expect(warnings.messages.count == 1)
    #expect(
      warnings.messages[0].contains(
        "other tables, indices or triggers than netopt makes; netopt renamed it to"))
  }

  @Test("a database with the statistics tables of ANALYZE is used")
  func analyzedDatabase() throws {
    try fill(5)
    try Database(directory + "/responses.db").execute("ANALYZE")
    let store = store()
    #expect(store.entries(for: try Samples.key("0")).count == 1)
    store.close()
    #expect(warnings.messages.isEmpty)
  }

  @Test("a database with a newer schema is neither used nor changed")
  func newerSchema() throws {
    try fill(1)
    try Database(directory + "/responses.db").execute("PRAGMA user_version = \(DiskSchema.version + 1)")
    try useInVain(store())
    #expect(warnings.messages.count == 1)
    #expect(warnings.messages[0].contains("has a schema that this version of netopt does not know"))
    #expect(
      try Statement("SELECT count(*) FROM entries", in: Database(directory + "/responses.db")).integer() == 2)
  }

  @Test("a database of another program is replaced, with one warning")
  func foreignDatabase() throws {
    mkdir(directory, 0o700)
    try Database(directory + "/responses.db").execute(
      "CREATE TABLE entries (x); PRAGMA user_version = \(DiskSchema.version)")
    let store = store()
    let key = try Samples.key("a")
    store.insert(Samples.entry(key))
    #expect(store.entries(for: key).count == 1)
    #expect(warnings.messages.count == 1)
  }

  /// The table takes few pages. But the pages refer to each other many times, so that SQLite would read 10^18
  /// rows from them (`CircularTable`). An inspection must end with an error instead.
  @Test(
    "a table whose pages form cycles is unreadable to an inspection, and such totals are put aside",
    arguments: ["totals", "evictions", "entries"])
  func circularTable(name: String) throws {
    try fill(3)
    let path = directory + "/responses.db"
    var root: Int64?
    do {
      let database = try Database(path)
      try database.execute("PRAGMA journal_mode = DELETE")
      root = try Statement("SELECT rootpage FROM sqlite_master WHERE name = ?", in: database).integer(
        .text(name))
    }
    // A record of SQLite's file format: the length of its header, a type for each column, and the values. The
    // first column is the row id, with the type NULL. All others have the type 1, an integer of one byte, and
    // the value 1.
    let columns = ["totals": 4, "evictions": 6, "entries": 15][name] ?? 0
    let row = [UInt8(columns + 1), 0] + [UInt8](repeating: 1, count: 2 * (columns - 1))
    try CircularTable.write(to: path, root: Int(try #require(root)), row: row)
    let inspection = try DiskInspection(directory)
    // The calls that read the table. `usage` does not read `totals`.
    let looks = [{ _ = try inspection.clear() }] + (name == "totals" ? [] : [{ _ = try inspection.usage() }])
    for look in looks {
      let error = #expect(throws: NetOptError.self) { try look() }
      #expect(error?.code == .unreadableFile, "\(error?.message ?? "")")
    }
    guard name == "totals" else { return }
    let store = store()
    let key = try Samples.key("a")
    store.insert(Samples.entry(key))
    store.insert(Samples.entry(key))
    #expect(store.entries(for: key).count == 1)
    #expect(warnings.messages.count == 1 && warnings.messages[0].contains("totals"), "\(warnings.messages)")
    #expect(FileManager.default.fileExists(atPath: path + ".broken"))
  }
}
