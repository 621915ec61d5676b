import NetOptCore
import NetOptSQLite

/// An open database with the statements that are used all the time. Not to be used by two threads at once.
final class DiskConnection {
  /// Larger bodies go to files.
  static let mostInlineBytes = 100_000
  /// How many evictions are remembered.
  static let mostEvictions: Int64 = 1000
  /// How many variants of a key are kept, as in memory.
  static let mostVariants = 16

  let database: Database
  let files: BodyFiles
  let directory: DiskDirectory
  let identity: DiskDirectory.Identity?
  let statements: DiskStatements
  /// Whether hits are counted, and what is damaged is removed.
  let changes: Bool
  /// Hits that are not in the database yet, by row.
  var pendingHits: [Int64: Int64] = [:]

  /// Opens the database of a directory, makes its tables, and removes orphans.
  ///
  /// - Parameters:
  ///   - mayCreate: whether the database is made, orphans are removed and hits counted; otherwise it is opened as it is, and
  ///     looking changes nothing.
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
      // Before anything is set that is written to the file: what is not ours stays as it is.
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
      // Tables that are not there, or not as they should be, in a database that says that they are.
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
      // Another process may have been first.
      guard try version.integer() == 0 else { return }
      try database.execute(DiskSchema.tables)
    }
  }

  /// Leaves the files to whoever opens the database next when another process writes for long.
  private func sweepUnlessBusy() throws(DiskError) {
    do throws(DiskError) { try sweep() } catch {
      guard error.isBusy else { throw error }
    }
  }

  /// Removes the files that no row names.
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

  /// Does something with the database.
  func database<Result>(_ work: () throws(SQLiteError) -> Result) throws(DiskError) -> Result {
    do throws(SQLiteError) { return try work() } catch { throw .database(error) }
  }

  /// Performs work in a transaction that may write; is rolled back when the work throws.
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

  /// What all entries take, and the clock of GDSF.
  func totals() throws(SQLiteError) -> (entries: Int64, bytes: Int64, clock: Double) {
    let rows = try statements.totals.rows { row in (row.integer(0), row.integer(1), row.real(2)) }
    guard rows.count == 1, let row = rows.first, row.0 >= 0, row.1 >= 0, row.2.isFinite else {
      throw SQLiteError(corrupt: database.path, "the totals are missing, are there twice, or make no sense")
    }
    return (row.0, row.1, row.2)
  }
}
