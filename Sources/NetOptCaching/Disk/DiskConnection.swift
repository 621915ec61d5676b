import NetOptCore
import NetOptSQLite

/// An open database with its prepared statements. Two threads must not use it at the same time.
final class DiskConnection {
  /// The maximum size of a body in the database, in bytes. Larger bodies go to files.
  static let mostInlineBytes = 100_000
  /// The maximum number of rows in the table of evictions.
  static let mostEvictions: Int64 = 1000
  /// The maximum number of variants of a key, as in memory.
  static let mostVariants = 16

  let database: Database
  let files: BodyFiles
  let directory: DiskDirectory
  let identity: DiskDirectory.Identity?
  let statements: DiskStatements
  /// Whether the connection counts hits and removes damaged entries.
  let changes: Bool
  /// The hits per row that are not written to the database yet.
  var pendingHits: [Int64: Int64] = [:]

  /// Opens the database of a directory, creates its tables, and removes orphaned files.
  ///
  /// - Parameters:
  ///   - mayCreate: whether to create the database, remove orphaned files and count hits. Otherwise the
  ///     connection opens an existing database and changes nothing.
  ///   - patience: how long to wait for other processes, in milliseconds.
  init(_ directory: DiskDirectory, mayCreate: Bool, patience: Int32) throws(DiskError) {
    self.directory = directory
    changes = mayCreate
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
      // Checks before any setting writes to the file: a database that does not belong to netopt must stay
      // unchanged.
      if !isNew { try Self.check(version, database, directory) }
      if isNew { try database.execute(DiskSchema.layout) }
      try database.execute(DiskSchema.settings)
      if isNew {
        try Self.makeTables(database, version)
        try Self.check(version, database, directory)
      }
      statements = try DiskStatements(database)
    } catch let error as DiskError {
      throw error
    } catch let error as SQLiteError {
      // The database claims this schema version, but tables are missing or different.
      throw .database(error.isOtherSchema ? SQLiteError(corrupt: directory.database, error.reason) : error)
    } catch {
      throw .unfit("\(error)")
    }
    if mayCreate { try sweepUnlessBusy() }
  }

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

  private static func makeTables(_ database: Database, _ version: Statement) throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      // Another process may have created the tables meanwhile.
      guard try version.integer() == 0 else { return }
      try database.execute(DiskSchema.tables)
    }
  }

  /// Removes orphaned files, unless another process writes for long. Then the next process that opens the
  /// database removes them.
  private func sweepUnlessBusy() throws(DiskError) {
    do throws(DiskError) { try sweep() } catch {
      guard error.isBusy else { throw error }
    }
  }

  /// Removes the files that no row names. Returns free pages to the file system when there are more than
  /// 1024, and more than half of the database is free.
  private func sweep() throws(DiskError) {
    let orphans = try transaction { () throws(DiskError) -> [String] in try self.orphans() }
    files.sweep(orphans)
    try database { () throws(SQLiteError) in
      let pages = try Statement("PRAGMA page_count", in: database).integer() ?? 0
      let free = try Statement("PRAGMA freelist_count", in: database).integer() ?? 0
      if free > 1024, free > pages / 2 { try database.execute("PRAGMA incremental_vacuum") }
    }
  }

  /// The files that no row names.
  func orphans() throws(DiskError) -> [String] {
    try files.orphans { (name) throws(DiskError) in
      try database { () throws(SQLiteError) -> Bool in try statements.file.integer(.text(name)) != nil }
    }
  }

  /// Runs work on the database, and converts its errors to `DiskError`.
  func database<Result>(_ work: () throws(SQLiteError) -> Result) throws(DiskError) -> Result {
    do throws(SQLiteError) { return try work() } catch { throw .database(error) }
  }

  /// Runs work in a write transaction, which is rolled back when the work throws.
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

  /// The number of entries, their total size in bytes, and the GDSF clock.
  func totals() throws(SQLiteError) -> (entries: Int64, bytes: Int64, clock: Double) {
    let rows = try statements.totals.rows { row in (row.integer(0), row.integer(1), row.real(2)) }
    guard rows.count == 1, let row = rows.first, row.0 >= 0, row.1 >= 0, row.2.isFinite else {
      throw SQLiteError(corrupt: database.path, "the totals are missing, duplicate or invalid")
    }
    return (row.0, row.1, row.2)
  }
}
