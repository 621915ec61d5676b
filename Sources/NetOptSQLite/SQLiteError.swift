import CSQLite
package import NetOptCore

/// An error that SQLite has reported, or that netopt has found in a database.
package struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The path of the database, or of a file that SQLite keeps beside it.
  package let path: String
  /// The extended result code: https://www.sqlite.org/rescode.html.
  package let code: Int32
  /// The error in words: SQLite's text, or netopt's text for an error that netopt has found.
  package let reason: String

  /// Makes an error for a file that netopt has found to be corrupt.
  package init(corrupt path: String, _ reason: String) {
    self.path = path
    code = SQLITE_CORRUPT
    self.reason = reason
  }

  /// Makes an error for a file that SQLite must not open.
  init(unusable path: String, _ reason: String) {
    self.path = path
    code = SQLITE_CANTOPEN
    self.reason = reason
  }

  /// Makes an error from a result code of SQLite.
  ///
  /// - Parameter handle: the connection, which has the text of its last error; `nil` when there is no
  ///   connection.
  init(_ path: String, _ code: Int32, _ handle: OpaquePointer?) {
    self.path = path
    // A statement is interrupted only when it exceeds the limit of `Database` on its instructions.
    guard code & 0xff != SQLITE_INTERRUPT else {
      self.code = SQLITE_CORRUPT
      reason = "a statement takes longer than any on a file of this size; its pages form a cycle"
      return
    }
    self.code = code
    let text = handle.flatMap { sqlite3_errcode($0) == SQLITE_OK ? nil : sqlite3_errmsg($0) }
    reason = String(cString: text ?? sqlite3_errstr(code))
  }

  /// Whether the file is not a database, or is corrupt.
  package var isCorrupt: Bool { [SQLITE_NOTADB, SQLITE_CORRUPT].contains(code & 0xff) }

  /// Whether another connection held a lock for longer than the `patience` of the `Database`.
  package var isBusy: Bool { [SQLITE_BUSY, SQLITE_LOCKED].contains(code & 0xff) }

  /// Whether the error is SQLITE_ERROR. SQLite accepts netopt's statements for the expected tables, so the
  /// database has other tables than the statement expects.
  package var isOtherSchema: Bool { code & 0xff == SQLITE_ERROR }

  /// Whether the operation violates a constraint of the database.
  package var breaksConstraint: Bool { code & 0xff == SQLITE_CONSTRAINT }

  /// Whether the file is no longer at the path at which it was opened: SQLITE_READONLY_DBMOVED, which Swift
  /// does not import.
  package var isMoved: Bool { code == SQLITE_READONLY | 4 << 8 }

  /// `the database nonces.db: file is not a database`.
  package var description: String { "the database \(path): \(reason)" }

  /// The error that callers of netopt get: `unreadableFile` for a file that is corrupt or cannot be opened,
  /// otherwise `libraryFailed`.
  package func netOptError(in phase: NetOptError.Phase) -> NetOptError {
    NetOptError(
      isCorrupt || code & 0xff == SQLITE_CANTOPEN ? .unreadableFile : .libraryFailed, phase: phase,
      description,
      underlying: NetOptError.Underlying(.sqlite, code: code, text: reason))
  }
}
