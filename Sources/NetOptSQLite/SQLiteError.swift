import CSQLite
package import NetOptCore

/// Why SQLite did not do what it was asked for.
package struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file.
  package let path: String
  /// The extended result code: https://www.sqlite.org/rescode.html.
  package let code: Int32
  /// SQLite's text for it.
  package let reason: String

  /// Makes an error of SQLite's that another than SQLite has found.
  package init(corrupt path: String, _ reason: String) {
    self.path = path
    code = SQLITE_CORRUPT
    self.reason = reason
  }

  /// Something that SQLite is not to open.
  init(unusable path: String, _ reason: String) {
    self.path = path
    code = SQLITE_CANTOPEN
    self.reason = reason
  }

  init(_ path: String, _ code: Int32, _ handle: OpaquePointer?) {
    self.path = path
    // Only the limit of `Database` on the steps of a statement interrupts statements.
    guard code & 0xff != SQLITE_INTERRUPT else {
      self.code = SQLITE_CORRUPT
      reason = "a statement takes longer than any on a file of this size; its pages lead in circles"
      return
    }
    self.code = code
    let text = handle.flatMap { sqlite3_errcode($0) == SQLITE_OK ? nil : sqlite3_errmsg($0) }
    reason = String(cString: text ?? sqlite3_errstr(code))
  }

  /// Whether the file is no database, or a broken one.
  package var isCorrupt: Bool { [SQLITE_NOTADB, SQLITE_CORRUPT].contains(code & 0xff) }

  /// Whether somebody else had the database for longer than we wait.
  package var isBusy: Bool { [SQLITE_BUSY, SQLITE_LOCKED].contains(code & 0xff) }

  /// Whether the statement makes no sense for this database: it has another schema.
  package var isOtherSchema: Bool { code & 0xff == SQLITE_ERROR }

  /// Whether the database has a rule that does not allow what was asked for.
  package var breaksConstraint: Bool { code & 0xff == SQLITE_CONSTRAINT }

  /// Whether the file is no longer where it was opened: SQLITE_READONLY_DBMOVED, which Swift does not import.
  package var isMoved: Bool { code == SQLITE_READONLY | 4 << 8 }

  /// `the database nonces.db: file is not a database`.
  package var description: String { "the database \(path): \(reason)" }

  /// The error for those who use netopt.
  package func netOptError(in phase: NetOptError.Phase) -> NetOptError {
    NetOptError(
      isCorrupt || code & 0xff == SQLITE_CANTOPEN ? .unreadableFile : .libraryFailed, phase: phase,
      description,
      underlying: NetOptError.Underlying(.sqlite, code: code, text: reason))
  }
}
