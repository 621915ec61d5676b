import NetOptCore
import NetOptSQLite

/// An open database of a disk cache, with its prepared statements. Two threads must not use it at the same
/// time.
final class DiskConnection {
  /// The maximum size of a body in the database, in bytes. Larger bodies go to files.
  static let mostInlineBytes = 100_000
  /// The maximum number of evictions that the database records. Older records are deleted.
  static let mostEvictions: Int64 = 1000
  /// The maximum number of entries of one key. Each entry is a variant: the response for other values of the
  /// request fields in `Vary`. `MemoryStore` has an equal limit.
  static let mostVariants = 16

  let database: Database
  /// The files of the bodies that are too large for the database.
  let files: BodyFiles
  /// The directory that contains the database and the files.
  let directory: DiskDirectory
  /// The identity of the database file when it was opened. The store compares it later with the identity of
  /// the file at this path, to see whether another process has replaced the file. `nil` when the file was
  /// gone immediately after it was opened.
  let identity: DiskDirectory.Identity?
  let statements: DiskStatements
  /// Whether look-ups may change the database. If not, they count no hits and leave damaged entries in place.
  /// The methods that insert or remove entries do not check this: `DiskInspection.clear` removes all entries
  /// on a connection for which it is false.
  let mayChange: Bool
  /// The numbers of hits that are not yet written to the database, by the id of the entry's row.
  var pendingHits: [Int64: Int64] = [:]

  /// Opens the database of a directory. If it may create the database, it also creates missing tables and
  /// removes orphaned files.
  ///
  /// - Parameters:
  ///   - mayCreate: whether the connection may create the database and missing tables, and remove orphaned
  ///     files. If not, it opens an existing database and leaves its entries unchanged. `mayChange` gets this
  ///     value.
  ///   - patience: how long each statement waits for a lock on the database that another process holds, in
  ///     milliseconds.
  init(_ directory: DiskDirectory, mayCreate: Bool, patience: Int32) throws(DiskError) {
    self.directory = directory
    mayChange = mayCreate
    files = BodyFiles(directory: directory.bodies)
    do {
      let database = try Database(
        directory.database, access: mayCreate ? .createWithoutLinks : .existingWithoutLinks,
        patience: patience)
      self.database = database
      identity = directory.databaseIdentity
      try database.keepLog()
      let version = try Statement("PRAGMA user_version", in: database)
      let isNew = try mayCreate && version.integer() == 0
      // The check comes before the settings, which write to the file: a database that does not belong to
      // netopt must stay unchanged.
      if !isNew { try Self.check(version, database, directory) }
      if isNew { try database.execute(DiskSchema.layout) }
      try database.useLog()
      try database.execute(DiskSchema.settings)
      if isNew {
        try Self.makeTables(database, version)
        try Self.check(version, database, directory)
      }
      statements = try DiskStatements(database)
    } catch let error as DiskError {
      throw error
    } catch let error as SQLiteError {
      // `isOtherSchema`: tables are missing or different, although the database has netopt's schema version.
      // Such a database counts as corrupt.
      throw .database(error.isOtherSchema ? SQLiteError(corrupt: directory.database, error.reason) : error)
    } catch {
      throw .unfit("\(error)")
    }
    if mayCreate { try sweepUnlessBusy() }
  }

  /// Checks that the database has the schema of this version of netopt.
  ///
  /// - Throws: an error with `isCorrupt` when the schema version is older, or when the version is right but
  ///   the tables are different. `unfit` for any other schema version: the database may belong to another
  ///   program or to a newer netopt.
  private static func check(_ version: Statement, _ database: Database, _ directory: DiskDirectory) throws {
    let found = try version.integer() ?? 0
    if (1..<DiskSchema.version).contains(found) {
      throw DiskError.database(
        SQLiteError(corrupt: directory.database, "its schema is that of an older version of netopt"))
    }
    guard found == DiskSchema.version else {
      throw DiskError.unfit(
        "the database \(directory.database) has a schema that this version of netopt does not know")
    }
    guard try database.definitions() == Set(DiskSchema.definitions) else {
      throw DiskError.database(
        SQLiteError(corrupt: directory.database, "it has other tables, indices or triggers than netopt makes")
      )
    }
  }

  /// Creates the tables, unless another process has created them meanwhile.
  private static func makeTables(_ database: Database, _ version: Statement) throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      // Another process may have created the tables before this transaction began.
      guard try version.integer() == 0 else { return }
      try database.execute(DiskSchema.tables)
    }
  }

  /// Removes orphaned files. When another process keeps the database locked for too long, leaves them to the
  /// next process that opens the database.
  private func sweepUnlessBusy() throws(DiskError) {
    do throws(DiskError) { try sweep() } catch {
      guard error.isBusy else { throw error }
    }
  }

  /// Removes orphaned files. Also shrinks the database file if more than 1024 of its pages, and more than
  /// half of all its pages, are free.
  private func sweep() throws(DiskError) {
    let orphans = try transaction { () throws(DiskError) -> [String] in try self.orphans() }
    files.sweep(orphans)
    try database { () throws(SQLiteError) in
      let pages = try Statement("PRAGMA page_count", in: database).integer() ?? 0
      let free = try Statement("PRAGMA freelist_count", in: database).integer() ?? 0
      if free > 1024, free > pages / 2 { try database.execute("PRAGMA incremental_vacuum") }
    }
  }

  /// The names of the orphaned files: body files that no row names, and temporary files whose writer has
  /// ended. Call it in a write transaction.
  func orphans() throws(DiskError) -> [String] {
    try files.orphans { (name) throws(DiskError) in
      try database { () throws(SQLiteError) -> Bool in try statements.file.integer(.text(name)) != nil }
    }
  }

  /// Runs work on the database and converts its errors to `DiskError`.
  func database<Result>(_ work: () throws(SQLiteError) -> Result) throws(DiskError) -> Result {
    do throws(SQLiteError) { return try work() } catch { throw .database(error) }
  }

  /// Runs work in a write transaction. The transaction is rolled back when the work throws an error.
  func transaction<Result>(_ work: () throws(DiskError) -> Result) throws(DiskError) -> Result {
    var failure: DiskError?
    var result: Result?
    do throws(SQLiteError) {
      try database.transaction { () throws(SQLiteError) in
        do throws(DiskError) { result = try work() } catch {
          failure = error
          throw SQLiteError(corrupt: database.path, "the work failed")
        }
      }
    } catch {
      throw failure ?? .database(error)
    }
    guard let result else { throw .unfit("the transaction has no result") }
    return result
  }

  /// The number of entries, the disk space that they take in bytes, and the GDSF clock (`makeRoom`).
  func totals() throws(SQLiteError) -> (entries: Int64, bytes: Int64, clock: Double) {
    let rows = try statements.totals.rows { row in (row.integer(0), row.integer(1), row.real(2)) }
    guard rows.count == 1, let row = rows.first, row.0 >= 0, row.1 >= 0, row.2.isFinite else {
      throw SQLiteError(corrupt: database.path, "the totals are missing, duplicate or invalid")
    }
    return (row.0, row.1, row.2)
  }
}
