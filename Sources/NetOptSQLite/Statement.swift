import CSQLite

/// A prepared statement: sqlite3_prepare_v3. Belongs to its database, and is used where that is used.
package final class Statement: @unchecked Sendable {
  // Unchecked: as with the database.
  private let handle: OpaquePointer
  private let database: Database

  /// A value that takes the place of a "?".
  package enum Value: Sendable {
    /// A whole number.
    case integer(Int64)
    /// A text.
    case text(String)
    /// Bytes.
    case blob([UInt8])
  }

  /// Prepares a statement that is to be used often.
  package init(_ sql: String, in database: Database) throws(SQLiteError) {
    var prepared: OpaquePointer?
    let code = sqlite3_prepare_v3(
      database.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
    guard code == SQLITE_OK, let prepared else { throw SQLiteError(database.path, code, database.handle) }
    handle = prepared
    self.database = database
  }

  deinit { sqlite3_finalize(handle) }

  /// Performs the statement.
  package func run(_ values: Value...) throws(SQLiteError) { _ = try first(values) { _ in } }

  /// Performs the statement, and reads the whole number in the first column of its first row.
  ///
  /// - Returns: `nil` when there is no row.
  package func integer(_ values: Value...) throws(SQLiteError) -> Int64? {
    try first(values) { sqlite3_column_int64($0, 0) }
  }

  private func first<Result>(
    _ values: [Value], _ read: (OpaquePointer) -> Result
  ) throws(SQLiteError) -> Result? {
    defer {
      sqlite3_reset(handle)
      sqlite3_clear_bindings(handle)
    }
    for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1)) }
    var result: Result?
    while true {
      let code = sqlite3_step(handle)
      if code == SQLITE_DONE { return result }
      guard code == SQLITE_ROW else { throw SQLiteError(database.path, code, database.handle) }
      if result == nil { result = read(handle) }
    }
  }

  private func bind(_ value: Value, at index: Int32) throws(SQLiteError) {
    let code =
      switch value {
      case .integer(let number): sqlite3_bind_int64(handle, index, number)
      case .text(let text): netopt_sqlite_bind_text(handle, index, text, Int32(text.utf8.count))
      case .blob(let bytes): netopt_sqlite_bind_blob(handle, index, bytes, Int32(bytes.count))
      }
    guard code == SQLITE_OK else { throw SQLiteError(database.path, code, database.handle) }
  }
}
