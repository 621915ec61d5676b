public import NetOptCore
import NetOptLocking
import NetOptSQLite

/// A nonce store in an SQLite file. Several processes may share the file, and the nonces outlive the
/// processes. SQLite writes to a write-ahead log without waiting for the disk, which keeps writes short. A
/// power cut may lose the newest nonces. The end of a process loses none.
public final class SQLiteNonceStore: NonceStore {
  /// The database with its statements.
  private struct Connection: @unchecked Sendable {
    // Unchecked: every use is under the lock of `SQLiteNonceStore.connection`.
    let database: Database
    /// Finds a nonce of a key.
    let find: Statement
    /// Adds a nonce.
    let insert: Statement
    /// Sets the table column `forgotten.created` to the latest `created` of the expired nonces, unless it is
    /// already later.
    let noteForgotten: Statement
    /// Deletes the expired nonces.
    let forget: Statement
    /// Reads `forgotten.created`: the latest `created` of all deleted nonces. No row if none was deleted.
    let forgotten: Statement
    /// Reads the number of nonces.
    let count: Statement
    /// The earliest time at which this process next deletes the expired nonces, in seconds since 1970. A full
    /// store deletes them earlier.
    var nextSweep = Int64.min

    /// The outcome of recording a nonce. `new`: the nonce was recorded. `known`: the store already has it.
    /// `full`: the store has the maximum number of nonces, and none of them has expired.
    enum Outcome {
      case new, known, full
      /// The nonce may have been deleted: its signature was made at `createdUntil` or earlier. This is the
      /// latest `created` of all deleted nonces, in seconds since 1970.
      case forgotten(createdUntil: Int64)
    }

    /// Records a nonce in one transaction.
    mutating func record(
      _ nonce: String, of key: String, created: Int64, until expiry: Int64, now: Int64, limit: Int64
    ) throws(SQLiteError) -> Outcome {
      let isDue = now >= nextSweep
      if isDue { nextSweep = now.addingClamped(10) }
      return try database.transaction { [self] () throws(SQLiteError) -> Outcome in
        if isDue { try sweep(before: now) }
        if try count.integer() ?? 0 >= limit {
          try sweep(before: now)
          if try count.integer() ?? 0 >= limit { return .full }
        }
        if try find.integer(.text(key), .text(nonce)) != nil { return .known }
        if let last = try forgotten.integer(), created <= last { return .forgotten(createdUntil: last) }
        try insert.run(.text(key), .text(nonce), .integer(created), .integer(expiry))
        return .new
      }
    }

    /// Deletes the nonces whose `expiry` is before `now`. Keeps the latest `created` of these nonces in the
    /// table `forgotten`.
    private func sweep(before now: Int64) throws(SQLiteError) {
      try noteForgotten.run(.integer(now))
      try forget.run(.integer(now))
    }
  }

  private let connection: Locked<Connection>
  /// The maximum number of nonces in the store.
  private let limit: Int64

  /// Opens a store. Creates the file if it does not exist.
  ///
  /// - Parameters:
  ///   - path: the file. SQLite keeps `-wal` and `-shm` files beside it.
  ///   - limit: the maximum number of nonces in the store. Each nonce takes about 100 bytes.
  /// - Throws: `unreadableFile` when the file cannot be opened or is not a nonce store. The store then does
  ///   not change the file.
  public init(_ path: String, limit: Int = 1_000_000) throws(NetOptError) {
    self.limit = Int64(limit)
    do throws(SQLiteError) {
      connection = Locked(try Self.open(path))
    } catch {
      throw error.netOptError(in: .sign)
    }
  }

  /// The statements that create the tables. The triggers keep the number of nonces in the table `size`,
  /// whichever process adds or deletes them. Without this table, SQLite would have to count the nonces each
  /// time.
  private static let definitions = [
    """
    CREATE TABLE nonces (
      key TEXT NOT NULL, nonce TEXT NOT NULL, created INTEGER NOT NULL, expiry INTEGER NOT NULL,
      PRIMARY KEY (key, nonce)) WITHOUT ROWID
    """,
    "CREATE INDEX nonces_expiry ON nonces (expiry, created)",
    "CREATE TABLE size (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL)",
    "CREATE TABLE forgotten (one INTEGER PRIMARY KEY CHECK (one = 1), created INTEGER NOT NULL)",
    """
    CREATE TRIGGER nonces_added AFTER INSERT ON nonces
      BEGIN UPDATE size SET count = count + 1; END
    """,
    """
    CREATE TRIGGER nonces_removed AFTER DELETE ON nonces
      BEGIN UPDATE size SET count = count - 1; END
    """,
  ]

  /// Opens the database, creates missing tables, and prepares the statements. Throws if the file has other
  /// tables, indices or triggers than `definitions`.
  private static func open(_ path: String) throws(SQLiteError) -> Connection {
    let database = try Database(path)
    guard try database.definitions().isSubset(of: definitions) else {
      throw SQLiteError(
        corrupt: path,
        "it has other tables, indices or triggers than netopt makes; name another file, and netopt creates it"
      )
    }
    try database.useLog()
    try database.execute("PRAGMA synchronous = NORMAL")
    let create = definitions.map { $0.replacing(/^CREATE [A-Z]+/) { "\($0.output) IF NOT EXISTS" } }
    try database.execute(
      "BEGIN IMMEDIATE; \(create.joined(separator: ";\n"));"
        // With the WHERE clause, SQLite counts the nonces one by one. Without it, a single instruction of
        // SQLite counts them all, and nothing can interrupt that instruction.
        + "INSERT OR IGNORE INTO size SELECT 1, count(*) FROM nonces WHERE NOT EXISTS (SELECT 1 FROM size); COMMIT"
    )
    return Connection(
      database: database,
      find: try Statement("SELECT 1 FROM nonces WHERE key = ? AND nonce = ?", in: database),
      insert: try Statement("INSERT INTO nonces VALUES (?, ?, ?, ?)", in: database),
      noteForgotten: try Statement(
        """
        INSERT INTO forgotten SELECT 1, created FROM nonces WHERE expiry < ? ORDER BY created DESC LIMIT 1
          ON CONFLICT (one) DO UPDATE SET created = max(created, excluded.created)
        """, in: database),
      forget: try Statement("DELETE FROM nonces WHERE expiry < ?", in: database),
      forgotten: try Statement("SELECT created FROM forgotten", in: database),
      count: try Statement("SELECT count FROM size", in: database))
  }

  /// Records a nonce, as `NonceStore` describes. Waits up to 5 s for other processes that write to the file.
  public func record(
    _ nonce: String, of key: String, created: Int64, until expiry: Int64, now: Int64
  ) throws(NonceStoreError) -> Bool {
    let limit = limit
    let outcome = connection.withLock { connection -> Result<Bool, NonceStoreError> in
      do throws(SQLiteError) {
        switch try connection.record(
          nonce, of: key, created: created, until: expiry, now: now, limit: limit)
        {
        case .new: return .success(true)
        case .known: return .success(false)
        case .full: return .failure(.full(with: Int(limit)))
        case .forgotten(let last): return .failure(.forgotten(createdUntil: last))
        }
      } catch {
        return .failure(NonceStoreError(error.description))
      }
    }
    return try outcome.get()
  }
}
