import CSQLite
import NetOptCore

/// A prepared statement: sqlite3_prepare_v3. It keeps its database open. Two threads must not use it and its
/// database at once.
package final class Statement: @unchecked Sendable {
  // Unchecked: no thread owns a statement, and the owner of the database admits one thread at a time.
  /// The `sqlite3_stmt` object, which this object owns and frees.
  private let handle: OpaquePointer
  private let database: Database

  /// A value for a "?" in a statement.
  package enum Value: Sendable {
    /// A whole number.
    case integer(Int64)
    /// A floating-point number.
    case real(Double)
    /// A text.
    case text(String)
    /// Bytes.
    case blob([UInt8])
    /// NULL.
    case null

    /// A whole number; NULL for `nil`.
    package static func optional(_ number: Int64?) -> Value { number.map(Value.integer) ?? .null }
    /// A text; NULL for `nil`.
    package static func optional(_ text: String?) -> Value { text.map(Value.text) ?? .null }
  }

  /// Prepares a statement for repeated use.
  package init(_ sql: String, in database: Database) throws(SQLiteError) {
    // To prepare its first statement, a connection reads the schema, and that executes instructions.
    database.begin()
    var prepared: OpaquePointer?
    let code = sqlite3_prepare_v3(
      database.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
    guard code == SQLITE_OK, let prepared else { throw SQLiteError(database.path, code, database.handle) }
    handle = prepared
    self.database = database
  }

  deinit { sqlite3_finalize(handle) }

  /// Executes the statement and ignores its rows. The values take the places of the "?" in their order.
  package func run(_ values: Value...) throws(SQLiteError) { try perform(values) { _ in } }

  /// Executes the statement, and reads the whole number in the first column of its first row.
  ///
  /// - Returns: `nil` when there is no row.
  package func integer(_ values: Value...) throws(SQLiteError) -> Int64? {
    var result: Int64?
    try perform(values) { if result == nil { result = $0.integer(0) } }
    return result
  }

  /// Executes the statement, and converts each of its rows with a closure.
  package func rows<Element>(
    _ values: Value..., read: (borrowing Row) -> Element
  ) throws(SQLiteError) -> [Element] {
    var result: [Element] = []
    try perform(values) { result.append(read($0)) }
    return result
  }

  /// Binds the values, calls a closure with each row, and resets the statement.
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

  /// Binds a value to the "?" with this number, counted from 1.
  private func bind(_ value: Value, at index: Int32) throws(SQLiteError) {
    let code =
      switch value {
      case .integer(let number): sqlite3_bind_int64(handle, index, number)
      case .real(let number): sqlite3_bind_double(handle, index, number)
      case .text(let text): netopt_sqlite_bind_text(handle, index, text, Int32(text.utf8.count))
      // An empty array may have no pointer, and SQLite would bind a missing pointer as NULL.
      case .blob(let bytes) where bytes.isEmpty: sqlite3_bind_zeroblob(handle, index, 0)
      case .blob(let bytes): netopt_sqlite_bind_blob(handle, index, bytes, Int32(bytes.count))
      case .null: sqlite3_bind_null(handle, index)
      }
    guard code == SQLITE_OK else { throw SQLiteError(database.path, code, database.handle) }
  }
}

/// The current row of a statement, valid until the next step. The functions take the number of a column,
/// counted from 0. If the column has a value of another type than the function returns, SQLite converts the
/// value.
package struct Row: ~Copyable {
  private let handle: OpaquePointer

  init(_ handle: OpaquePointer) { self.handle = handle }

  /// A whole number; 0 for NULL.
  package func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  /// A whole number, or `nil` for NULL.
  package func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

  /// A floating-point number; 0 for NULL.
  package func real(_ column: Int32) -> Double { sqlite3_column_double(handle, column) }

  /// A text, in which invalid UTF-8 is repaired; `nil` for NULL.
  package func text(_ column: Int32) -> String? {
    isNull(column) ? nil : SlowText.withoutLongRuns(String(decoding: bytes(column), as: UTF8.self))
  }

  /// Bytes; none for NULL.
  package func bytes(_ column: Int32) -> [UInt8] {
    // The pointer comes first: asking for it may convert the value and change its length.
    let pointer = sqlite3_column_blob(handle, column)
    let count = Int(sqlite3_column_bytes(handle, column))
    // The memory belongs to SQLite and is valid until the next step, so the bytes are copied.
    return pointer.map { [UInt8](UnsafeRawBufferPointer(start: $0, count: count)) } ?? []
  }

  private func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
}
