import Dispatch
import FoundationEssentials
import Glibc
import NetOptTestSupport
import Synchronization
import TestTools
import Testing

@testable import NetOptSQLite

@Suite struct DatabaseTests {
  /// The path for a new database, in a directory of its own.
  private func path() throws -> String { try TemporaryDirectory.make("sqlite") + "/test.db" }

  @Test("another connection reads what a transaction has committed")
  func committedRow() throws {
    let path = try path()
    let first = try Database(path)
    try first.execute("CREATE TABLE t (a INTEGER, b TEXT, c BLOB)")
    try first.transaction { () throws(SQLiteError) in
      try Statement("INSERT INTO t VALUES (?, ?, ?)", in: first).run(.integer(7), .text("é"), .blob([0, 1]))
    }
    #expect(first.changes == 1)
    let second = try Database(path)
    let count = try Statement("SELECT a FROM t WHERE b = ? AND c = ?", in: second)
    #expect(try count.integer(.text("é"), .blob([0, 1])) == 7)
    #expect(try count.integer(.text("e"), .blob([0, 1])) == nil)
  }

  @Test("two connections that open a new database at once both use the write-ahead log")
  func logOfTwoConnections() throws {
    for _ in 0..<200 {
      let path = try path()
      let ready = Atomic<Int>(0)
      let errors = Mutex<[String]>([])
      DispatchQueue.concurrentPerform(iterations: 2) { number in
        do {
          let database = try Database(path)
          ready.add(1, ordering: .acquiringAndReleasing)
          // With one processor, both iterations may run on one thread.
          var spins = 0
          while ready.load(ordering: .acquiring) < 2, spins < 100_000 { spins += 1 }
          _ = try database.definitions()
          try database.useLog()
          try database.execute("BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS t (a INTEGER)")
          try database.execute("INSERT INTO t VALUES (\(number)); COMMIT")
        } catch {
          errors.withLock { $0.append("\(error)") }
        }
      }
      #expect(errors.withLock { $0 } == [])
      let database = try Database(path)
      #expect(try Statement("PRAGMA journal_mode", in: database).rows { $0.text(0) } == ["wal"])
      #expect(try Statement("SELECT a FROM t ORDER BY a", in: database).rows { $0.integer(0) } == [0, 1])
    }
  }

  @Test("a database that another connection keeps locked is refused when the patience is over")
  func lockedDatabase() throws {
    let path = try path()
    let owner = try Database(path)
    try owner.execute("BEGIN IMMEDIATE; CREATE TABLE t (a INTEGER)")
    let other = try Database(path, patience: 50)
    let begun = ContinuousClock.now
    let error = #expect(throws: SQLiteError.self) { try other.useLog() }
    #expect(error?.isBusy == true, "\(error?.reason ?? "")")
    #expect(ContinuousClock.now - begun >= .milliseconds(50))
    try owner.execute("COMMIT")
    try other.useLog()
  }

  @Test("a failed transaction leaves no rows")
  func failedTransaction() throws {
    let database = try Database(try path())
    try database.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    #expect(throws: SQLiteError.self) {
      try database.transaction { () throws(SQLiteError) in
        try database.execute("INSERT INTO t VALUES (1)")
        try database.execute("INSERT INTO t VALUES (1)")
      }
    }
    #expect(try Statement("SELECT count(*) FROM t", in: database).integer() == 0)
  }

  @Test("a value of more than 8 MiB, which netopt never writes, is refused; 16 KiB until the schema is known")
  func largeValues() throws {
    let database = try Database(try path())
    try database.execute("CREATE TABLE t (a BLOB)")
    #expect(throws: SQLiteError.self) { try database.execute("INSERT INTO t VALUES (zeroblob(20000))") }
    _ = try database.definitions()
    try database.execute("INSERT INTO t VALUES (zeroblob(8000000))")
    #expect(throws: SQLiteError.self) { try database.execute("INSERT INTO t VALUES (zeroblob(9000000))") }
    #expect(try Statement("SELECT count(*) FROM t", in: database).integer() == 1)
  }

  @Test("texts of a file and definitions with a long run are read at once", .timeLimit(.minutes(1)))
  func slowTexts() throws {
    let marks = String(repeating: "\u{301}\u{316}", count: 100_000)
    let path = try path()
    _ = try Database(path).definitions()
    let database = try Database(path)
    _ = try database.definitions()
    try database.execute("CREATE TABLE t (a TEXT, \"b\(marks)\" TEXT); CREATE TABLE u (\"c\(marks)\" TEXT)")
    try Statement("INSERT INTO t VALUES (?, '')", in: database).run(.text("x\(marks)"))
    #expect(try database.definitions().count == 2)
    let rows = try Statement("SELECT a FROM t", in: database).rows { $0.text(0) ?? "" }
    #expect(rows == ["x" + String(repeating: "\u{fffd}", count: 200_000)])
  }

  /// SQLite reads the statistics with the schema. A generated column is computed for each row, and one call of
  /// `instr` compares the texts for minutes.
  @Test("statistics that would be computed for minutes do not delay the check", .timeLimit(.minutes(1)))
  func slowStatistics() throws {
    let path = try path()
    let database = try Database(path)
    _ = try database.definitions()
    try database.execute("CREATE TABLE t (a); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1); ANALYZE")
    let long = "instr(hex(zeroblob(4000000)),hex(zeroblob(2000000))||''1'')"
    try database.execute(
      """
      PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET sql =
        'CREATE TABLE sqlite_stat1(x, y, z, tbl AS (\(long)), idx AS (y), stat AS (z))'
        WHERE name = 'sqlite_stat1';
      """)
    let began = ContinuousClock.now
    let found = try Database(path).definitions()
    #expect(found.isSuperset(of: ["CREATE TABLE t (a)", "CREATE INDEX i ON t (a)"]))
    // The caller refuses the file for the table that ANALYZE does not make.
    #expect(found.count == 3)
    #expect(ContinuousClock.now - began < .seconds(10))
  }

  @Test(
    "a table whose pages form a circle is reported as corrupt",
    arguments: ["SELECT a FROM t", "UPDATE t SET a = 2", "INSERT INTO u SELECT a FROM t"])
  func circularTable(sql: String) throws {
    let path = try path()
    let database = try Database(path)
    try database.execute("CREATE TABLE t (a); CREATE TABLE u (a)")
    let root = try Statement("SELECT rootpage FROM sqlite_master WHERE name = 't'", in: database).integer()
    try CircularTable.write(to: path, root: Int(try #require(root)), row: [2, 1, 1])
    let again = try Database(path)
    let statement = try Statement(sql, in: again)
    var rows = 0
    let error = #expect(throws: SQLiteError.self) {
      try again.transaction { () throws(SQLiteError) in _ = try statement.rows { _ in rows += 1 } }
    }
    #expect(error?.isCorrupt == true && error?.reason.contains("cycle") == true, "\(error?.reason ?? "")")
    #expect(rows < 10_000_000)
  }

  @Test("a statement on 300,000 rows runs to its end")
  func manyRows() throws {
    let path = try path()
    let database = try Database(path)
    _ = try database.definitions()
    try database.execute("PRAGMA journal_mode = WAL; CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    try database.execute("CREATE INDEX i ON t (b)")
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
    try database.execute("\(numbers) INSERT INTO t SELECT i, hex(i) FROM n")
    #expect(try Statement("PRAGMA integrity_check", in: database).rows { $0.text(0) } == ["ok"])
    #expect(
      try Statement("SELECT a FROM t ORDER BY b DESC", in: database).rows { $0.integer(0) }.count == 300_000)
    try database.execute("DELETE FROM t WHERE true")
    #expect(database.changes == 300_000)
  }

  /// `suffix` is the end of the file name: empty for the database, and otherwise for a file that SQLite keeps
  /// beside the database. SQLite would wait for ever to open a pipe.
  @Test(
    "a pipe or a directory in place of a file of SQLite is refused at once",
    arguments: ["", "-journal", "-wal", "-shm"], [true, false])
  func noFiles(suffix: String, isPipe: Bool) throws {
    let path = try path()
    let name = path + suffix
    #expect((isPipe ? mkfifo(name, 0o600) : mkdir(name, 0o700)) == 0)
    let error = #expect(throws: SQLiteError.self) { try Database(path) }
    #expect(error?.path == name && error?.reason.contains("not a regular file") == true)
  }

  @Test("a file that is no database is reported as corrupt and stays unchanged")
  func otherFile() throws {
    let path = try path()
    let text = String(repeating: "no database, but something that matters\n", count: 50)
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    let database = try Database(path)
    do {
      try database.execute("CREATE TABLE t (a)")
      Issue.record("it was accepted")
    } catch {
      #expect(error.isCorrupt)
      #expect(error.netOptError(in: .sign).code == .unreadableFile)
      #expect(error.description.contains(path))
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(text.utf8))
  }

  @Test("a directory cannot be opened as a database")
  func directory() throws {
    let folder = try TemporaryDirectory.make("sqlite")
    #expect(throws: SQLiteError.self) { try Database(folder) }
  }
}
