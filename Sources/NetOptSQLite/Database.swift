import CSQLite
import Glibc
import NetOptCore

/// A connection to an SQLite database: sqlite3_open_v2. Two threads must not use it at once, so its owner
/// uses it under a lock or on one thread only. Other processes may have the same file open.
package final class Database: @unchecked Sendable {
  // Unchecked: no thread owns a connection, and its owner admits one thread at a time.
  /// The `sqlite3` object, which this object owns and closes.
  let handle: OpaquePointer
  /// The path of the database file.
  package let path: String
  /// The longest time that a statement waits for a lock that another connection holds, in milliseconds.
  private let patience: Int32

  /// How to open the file.
  package enum Access: Sendable {
    /// Creates the file if it does not exist, and follows symbolic links.
    case create
    /// Creates the file if it does not exist. Refuses a path with a symbolic link anywhere in it.
    case createWithoutLinks
    /// Opens only an existing file, for reading and writing. Refuses a path with a symbolic link anywhere in
    /// it.
    case existingWithoutLinks
  }

  /// Opens a database. If `access` allows it, creates a missing file, which only its owner can read and
  /// write.
  ///
  /// - Parameters:
  ///   - path: the file.
  ///   - access: how to open the file.
  ///   - patience: the longest time in milliseconds that a statement waits for a lock that another connection
  ///     holds.
  /// - Throws: when the file cannot be opened, or when the database or a file that SQLite keeps beside it is
  ///   not a regular file. The file then stays as it is. SQLite reads the file only with the first statement,
  ///   so that statement throws if the file is not a database.
  package init(_ path: String, access: Access = .create, patience: Int32 = 5000) throws(SQLiteError) {
    try Self.checkFiles(path)
    var flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    if access != .existingWithoutLinks {
      // SQLite would create a file that others can read, as far as the umask allows. An existing file is not
      // opened here, because closing it would release the locks that other connections of this process hold
      // (fcntl(2)).
      let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      if descriptor >= 0 { close(descriptor) }
      flags |= SQLITE_OPEN_CREATE
    }
    if access != .create { flags |= SQLITE_OPEN_NOFOLLOW }
    var opened: OpaquePointer?
    // Extended result codes from the start. SQLite needs no mutex of its own, because the owner admits one
    // thread at a time.
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let error = SQLiteError(path, code, opened)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    self.path = path
    self.patience = patience
    sqlite3_busy_timeout(opened, patience)
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, Self.longestUncheckedValue)
    watch(every: 1)
  }

  /// Makes SQLite call `mustEnd` after each `steps` instructions.
  private func watch(every steps: Int32) {
    sqlite3_progress_handler(
      handle, steps,
      { context in
        guard let context else { return 0 }
        return Unmanaged<Database>.fromOpaque(context).takeUnretainedValue().mustEnd() ? 1 : 0
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  /// The maximum size of a value in bytes until `definitions` has returned. SQLite computes expressions when
  /// it loads the schema: a column of `sqlite_stat1` may be generated. One instruction can then take a time
  /// that grows with the square of the size, and nothing can interrupt it.
  private static let longestUncheckedValue: Int32 = 16 << 10
  /// The most CPU time of a statement until `definitions` has returned, in nanoseconds: 2 s. Waits for locks
  /// do not count.
  private static let longestUncheckedStatement: Int64 = 2_000_000_000
  /// Whether `definitions` has returned.
  private var isChecked = false
  /// The CPU time of this thread when the statement began, in nanoseconds. Only until `isChecked` is set.
  private var begun: Int64 = 0

  /// The CPU time of this thread in nanoseconds.
  private static var threadTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// The number of instructions that SQLite's virtual machine executes between two calls of `mustEnd`.
  private static let stepsPerLook: Int32 = 10_000
  /// The number of calls of `mustEnd` before a statement can be interrupted, however small the file is. They
  /// allow 10 million instructions, about 0.2 s.
  private static let leastLooks: Int64 = 1000
  /// The number of instructions that a statement may execute for each byte of the file, in addition to the
  /// first 10 million. On a cache of 100,000 entries without bodies, `PRAGMA integrity_check` or the removal
  /// of all entries takes 0.3 instructions per byte.
  private static let stepsPerByte: Int64 = 4

  /// The number of calls of `mustEnd` since the statement began.
  private var looks: Int64 = 0
  /// The number of calls of `mustEnd` that the statement may cause. `leastLooks` at first. Once these are
  /// used up, `mustEnd` adds more by the size of the file.
  private var mostLooks = Database.leastLooks

  /// Restarts the count of instructions. Call this before each statement. A statement that executes more
  /// instructions than the file's size allows is interrupted: sqlite3_progress_handler(3). Without this
  /// limit, a statement would never end in a file whose pages form a cycle.
  func begin() {
    (looks, mostLooks) = (0, Self.leastLooks)
    if !isChecked { begun = Self.threadTime }
  }

  /// Records that the statement has executed another `stepsPerLook` instructions.
  ///
  /// - Returns: whether the statement has executed more instructions than the file's size allows, so that
  ///   SQLite must interrupt it.
  private func mustEnd() -> Bool {
    if !isChecked { return Self.threadTime > begun + Self.longestUncheckedStatement }
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

  /// The maximum size of a value or a row in bytes: 8 MiB. netopt never writes as much. A value in a file
  /// whose pages form a cycle can claim to be far longer.
  private static let longestValue: Int32 = 8 << 20

  deinit { sqlite3_close_v2(handle) }

  /// Throws if there is a file that is not regular at the path of the database, or at the path of a file that
  /// SQLite keeps beside it. If such a file were a pipe, SQLite would wait for ever to open it (fifo(7)).
  private static func checkFiles(_ path: String) throws(SQLiteError) {
    for name in ["", "-journal", "-wal", "-shm"].map({ path + $0 }) {
      var status = stat()
      guard stat(name, &status) != 0 || status.st_mode & S_IFMT == S_IFREG else {
        throw SQLiteError(unusable: name, "it is not a regular file; remove it")
      }
    }
  }

  /// Makes transactions write to a write-ahead log: `PRAGMA journal_mode = WAL`. This changes the file.
  ///
  /// SQLite does not wait for a lock in this statement if another connection executes it at the same moment:
  /// each holds a read lock that the other one would wait for. One of them goes on, and the others fail at
  /// once. So this method waits for the write lock, without a read lock, and tries again until `patience` is
  /// over.
  package func useLog() throws(SQLiteError) {
    let clock = ContinuousClock()
    let end = clock.now + .milliseconds(patience)
    while true {
      do throws(SQLiteError) { return try execute("PRAGMA journal_mode = WAL") } catch {
        guard error.isBusy, clock.now < end else { throw error }
      }
      try transaction {}
    }
  }

  /// Tells SQLite to keep the file of the write-ahead log when the last connection is closed. SQLite then
  /// empties the file. Otherwise it would remove the file by its name. When a caller has moved the database
  /// away and made a new one at its path, this name may belong to the log of the new database.
  package func keepLog() throws(SQLiteError) {
    var isOn: Int32 = 1
    let code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &isOn)
    guard code == SQLITE_OK else { throw SQLiteError(path, code, handle) }
  }

  /// Executes one or more statements without values for "?", and ignores their rows.
  package func execute(_ sql: String) throws(SQLiteError) {
    begin()
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw SQLiteError(path, code, handle) }
  }

  /// The statements that created the tables, indices, triggers and views of the database, as SQLite keeps
  /// them: without `IF NOT EXISTS`. A trigger or a view can run for ever. So a caller that opens a file of
  /// unknown origin first compares these statements with those with which it would create the database. Until
  /// this method has returned, values are small and time is short.
  package func definitions() throws(SQLiteError) -> Set<String> {
    let statement = try Statement("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL", in: self)
    let definitions = Set(try statement.rows { $0.text(0) ?? "" }).subtracting(Self.statistics)
    isChecked = true
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Self.longestValue)
    watch(every: Self.stepsPerLook)
    return definitions
  }

  /// The tables that ANALYZE creates, as SQLite defines them (`aTable` in analyze.c). With another definition,
  /// the table of such a name may have columns or constraints that take minutes to compute.
  private static let statistics: Set = [
    "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
  ]

  /// The number of rows that the last INSERT, UPDATE or DELETE changed.
  package var changes: Int { Int(sqlite3_changes64(handle)) }

  /// Performs work in a transaction that takes the write lock at its start (`BEGIN IMMEDIATE`). So no other
  /// connection changes the data between a read and a write of the work. Rolls back if the work throws.
  package func transaction<Result>(
    _ work: () throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result {
    try execute("BEGIN IMMEDIATE")
    do throws(SQLiteError) {
      let result = try work()
      try execute("COMMIT")
      return result
    } catch {
      // A rollback may fail because SQLite has already rolled the transaction back:
      // https://www.sqlite.org/lang_transaction.html, 3.
      sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
      throw error
    }
  }
}
