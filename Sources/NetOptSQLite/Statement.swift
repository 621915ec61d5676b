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
    /// A number.
    case real(Double)
    /// A text.
    case text(String)
    /// Bytes.
    case blob([UInt8])
    /// Nothing.
    case null

    /// A whole number, or nothing.
    package static func optional(_ number: Int64?) -> Value { number.map(Value.integer) ?? .null }
    /// A text, or nothing.
    package static func optional(_ text: String?) -> Value { text.map(Value.text) ?? .null }
  }

  /// Prepares a statement that is to be used often.
  package init(_ sql: String, in database: Database) throws(SQLiteError) {
    // The first statement reads the schema.
    database.begin()
    var prepared: OpaquePointer?
    let code = sqlite3_prepare_v3(
      database.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
    guard code == SQLITE_OK, let prepared else { throw SQLiteError(database.path, code, database.handle) }
    handle = prepared
    self.database = database
  }

  deinit { sqlite3_finalize(handle) }

  /// Performs the statement.
  package func run(_ values: Value...) throws(SQLiteError) { try perform(values) { _ in } }

  /// Performs the statement, and reads the whole number in the first column of its first row.
  ///
  /// - Returns: `nil` when there is no row.
  package func integer(_ values: Value...) throws(SQLiteError) -> Int64? {
    var result: Int64?
    try perform(values) { if result == nil { result = $0.integer(0) } }
    return result
  }

  /// Performs the statement, and makes something of each of its rows.
  package func rows<Element>(
    _ values: Value..., read: (borrowing Row) -> Element
  ) throws(SQLiteError) -> [Element] {
    var result: [Element] = []
    try perform(values) { result.append(read($0)) }
    return result
  }

  private func perform(_ values: [Value], _ read: (borrowing Row) -> Void) throws(SQLiteError) {
    defer {
      sqlite3_reset(handle)
      sqlite3_clear_bindings(handle)
    }
    database.begin()
    for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1)) }
    while true {
      let code = sqlite3_step(handle)
      if code == SQLITE_DONE { return }
      guard code == SQLITE_ROW else { throw SQLiteError(database.path, code, database.handle) }
      read(Row(handle))
    }
  }

  private func bind(_ value: Value, at index: Int32) throws(SQLiteError) {
    let code =
      switch value {
      case .integer(let number): sqlite3_bind_int64(handle, index, number)
      case .real(let number): sqlite3_bind_double(handle, index, number)
      case .text(let text): netopt_sqlite_bind_text(handle, index, text, Int32(text.utf8.count))
      // Without bytes there may be no pointer, which would be bound as NULL.
      case .blob(let bytes) where bytes.isEmpty: sqlite3_bind_zeroblob(handle, index, 0)
      case .blob(let bytes): netopt_sqlite_bind_blob(handle, index, bytes, Int32(bytes.count))
      case .null: sqlite3_bind_null(handle, index)
      }
    guard code == SQLITE_OK else { throw SQLiteError(database.path, code, database.handle) }
  }
}

/// The row that a statement is at. Columns are counted from 0; one of another type is converted as SQLite does it.
package struct Row: ~Copyable {
  private let handle: OpaquePointer

  init(_ handle: OpaquePointer) { self.handle = handle }

  /// A whole number; 0 for NULL.
  package func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  /// A whole number, or `nil` for NULL.
  package func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

  /// A number; 0 for NULL.
  package func real(_ column: Int32) -> Double { sqlite3_column_double(handle, column) }

  /// A text; broken UTF-8 is mended. `nil` for NULL.
  package func text(_ column: Int32) -> String? {
    isNull(column) ? nil : String(decoding: bytes(column), as: UTF8.self)
  }

  /// Bytes, none for NULL.
  package func bytes(_ column: Int32) -> [UInt8] {
    // In this order: asking for the pointer may convert the value, and change its length.
    let pointer = sqlite3_column_blob(handle, column)
    let count = Int(sqlite3_column_bytes(handle, column))
    // The memory is SQLite's until the next step; it is copied here.
    return pointer.map { [UInt8](UnsafeRawBufferPointer(start: $0, count: count)) } ?? []
  }

  private func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
}
