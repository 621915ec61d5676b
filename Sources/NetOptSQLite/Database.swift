import CSQLite
import Glibc
import NetOptCore

/// A connection to an SQLite database: sqlite3_open_v2. Not to be used by two threads at once: whoever owns it keeps it
/// behind a lock. Other processes may have the same file open.
package final class Database: @unchecked Sendable {
  // Unchecked: a connection is tied to no thread, and its owner lets one in at a time.
  let handle: OpaquePointer
  /// The file.
  package let path: String

  /// What may be done to the file.
  package enum Access: Sendable {
    /// It is made when it is not there, and links are followed.
    case create
    /// It is made when it is not there. A path with a symbolic link anywhere in it is refused.
    case createWithoutLinks
    /// It must be there, and is written to. A path with a symbolic link anywhere in it is refused.
    case existingWithoutLinks
  }

  /// Opens a database, which is made when it is not there, readable by its owner alone.
  ///
  /// - Parameters:
  ///   - path: the file.
  ///   - access: what may be done to the file.
  ///   - patience: how long to wait for another connection that is writing, in milliseconds.
  /// - Throws: when the file cannot be opened, is no database, or something that is no file lies in the place of one of SQLite's. It is left as it is then.
  package init(_ path: String, access: Access = .create, patience: Int32 = 5000) throws(SQLiteError) {
    try Self.checkFiles(path)
    var flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    if access != .existingWithoutLinks {
      // SQLite would make the file readable by others, as far as the umask allows. One that is there is not touched:
      // closing it would take away the locks that other connections of this process have (fcntl(2)).
      let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      if descriptor >= 0 { close(descriptor) }
      flags |= SQLITE_OPEN_CREATE
    }
    if access != .create { flags |= SQLITE_OPEN_NOFOLLOW }
    var opened: OpaquePointer?
    // Extended result codes from the start; no mutex of SQLite's own, because the owner has one.
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let error = SQLiteError(path, code, opened)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    self.path = path
    sqlite3_busy_timeout(opened, patience)
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, Self.longestValue)
    sqlite3_progress_handler(
      opened, Self.stepsPerLook,
      { context in
        guard let context else { return 0 }
        return Unmanaged<Database>.fromOpaque(context).takeUnretainedValue().mustEnd() ? 1 : 0
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  /// How many instructions of SQLite's virtual machine pass between two looks at what a statement has done.
  private static let stepsPerLook: Int32 = 10_000
  /// The looks that every statement gets: 10 million instructions, some 0.2 s.
  private static let leastLooks: Int64 = 1000
  /// The instructions that a statement gets for each byte of the file. On a cache of 100,000 entries without bodies PRAGMA integrity_check, or the
  /// removal of all entries, takes 0.3 for each byte.
  private static let stepsPerByte: Int64 = 4

  private var looks: Int64 = 0
  private var mostLooks = Database.leastLooks

  /// Counts the instructions from here on: a statement begins. More than the file's size allows interrupts it, as in a file whose pages lead
  /// in circles it would never end: sqlite3_progress_handler(3).
  func begin() { (looks, mostLooks) = (0, Self.leastLooks) }

  private func mustEnd() -> Bool {
    looks += 1
    if looks == Self.leastLooks {
      let bytes = ["", "-wal"].reduce(Int64(0)) { sum, suffix in
        var status = stat()
        return stat(path + suffix, &status) == 0 ? sum.addingClamped(Int64(status.st_size)) : sum
      }
      mostLooks += bytes / Int64(Self.stepsPerLook) * Self.stepsPerByte
    }
    return looks > mostLooks
  }

  /// The most bytes of a value and of a row. Beyond what is ever written, and far less than a file can claim that leads in circles.
  private static let longestValue: Int32 = 8 << 20

  deinit { sqlite3_close_v2(handle) }

  /// Refuses what is no file in the place of the database or of what SQLite keeps beside it. To open a pipe it would wait for ever (fifo(7)).
  private static func checkFiles(_ path: String) throws(SQLiteError) {
    for name in ["", "-journal", "-wal", "-shm"].map({ path + $0 }) {
      var status = stat()
      guard stat(name, &status) != 0 || status.st_mode & S_IFMT == S_IFREG else {
        throw SQLiteError(unusable: name, "it is no regular file; remove it")
      }
    }
  }

  /// Has the write-ahead log emptied, and not removed, when the last connection is closed. SQLite removes it by its name,
  /// which may be that of another database's log by then, when databases are put aside and begun anew.
  package func keepLog() throws(SQLiteError) {
    var isOn: Int32 = 1
    let code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &isOn)
    guard code == SQLITE_OK else { throw SQLiteError(path, code, handle) }
  }

  /// Performs statements that return nothing of interest and take no values.
  package func execute(_ sql: String) throws(SQLiteError) {
    begin()
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw SQLiteError(path, code, handle) }
  }

  /// The statements that made what is in the database, without `IF NOT EXISTS`, as SQLite keeps them: tables, indices, triggers and
  /// views. A trigger or a view can be without end, so who takes a file from elsewhere compares them with his own first.
  package func definitions() throws(SQLiteError) -> Set<String> {
    // ANALYZE leaves tables of its own.
    let statement = try Statement(
      "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND NOT (type = 'table' AND name GLOB 'sqlite_stat*')",
      in: self)
    return Set(try statement.rows { $0.text(0) ?? "" })
  }

  /// How many rows the last statement changed.
  package var changes: Int { Int(sqlite3_changes64(handle)) }

  /// Performs work in a transaction that may write from its start (`BEGIN IMMEDIATE`), so that what it reads is still so
  /// when it writes. Is rolled back when the work throws.
  package func transaction<Result>(
    _ work: () throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result {
    try execute("BEGIN IMMEDIATE")
    do throws(SQLiteError) {
      let result = try work()
      try execute("COMMIT")
      return result
    } catch {
      // What cannot be rolled back has been rolled back already: https://www.sqlite.org/lang_transaction.html, 3.
      sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
      throw error
    }
  }
}
