import Glibc
import NetOptCore
import NetOptSQLite

/// An error of the disk cache.
enum DiskError: Error {
  /// An error of SQLite.
  case database(SQLiteError)
  /// A system call failed. The action completes the message "the file cannot be …", such as "opened". The
  /// number is the value of errno(3).
  case system(_ action: String, _ path: String, Int32)
  /// Another process held the lock of the directory for longer than the store waits. The number is this
  /// waiting time in milliseconds.
  case locked(_ path: String, Int32)
  /// The store cannot use the directory or the database, for example because others may write to the
  /// directory. The text names the fault and the remedy.
  case unfit(String)

  /// Whether the database is corrupt, so that the store must replace it.
  var isCorrupt: Bool {
    // The statements of this program fit the tables of `DiskSchema`. If SQLite calls a statement invalid, or
    // reports that a statement violates a constraint, the database has other tables.
    if case .database(let error) = self {
      return error.isCorrupt || error.isOtherSchema || error.breaksConstraint
    }
    return false
  }

  /// Whether another process locked the database or the directory for longer than the store waits.
  var isBusy: Bool {
    switch self {
    case .database(let error): error.isBusy
    case .locked: true
    case .system, .unfit: false
    }
  }

  /// Converts the error to an error for users of netopt.
  ///
  /// - Parameter consequence: what netopt does because of the error. It ends the message.
  func netOptError(_ consequence: String) -> NetOptError {
    switch self {
    case .database(let error):
      let cause = error.netOptError(in: .cache)
      return NetOptError(
        cause.code, phase: .cache, "\(cause.message); \(consequence)", underlying: cause.underlying)
    case .system(let action, let path, let code):
      let reason = String(cString: strerror(code))
      return NetOptError(
        action == "opened" ? .unreadableFile : .unwritableFile, phase: .cache,
        "the cache's \(path) cannot be \(action): \(reason); \(consequence)",
        underlying: .init(.system, code: code, text: reason))
    case .locked(let path, let milliseconds):
      return NetOptError(
        .unreadableFile, phase: .cache,
        "the cache's \(path) has been locked by another process for more than \(milliseconds) ms; find the process with fuser(1); \(consequence)"
      )
    case .unfit(let reason):
      return NetOptError(.unreadableFile, phase: .cache, "\(reason); \(consequence)")
    }
  }
}
