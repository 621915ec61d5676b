import Glibc
import NetOptCore
import NetOptSQLite

/// An error of the disk cache.
enum DiskError: Error {
  /// An error of SQLite.
  case database(SQLiteError)
  /// A failed system call: the action, the path, and the value of errno(3).
  case system(_ action: String, _ path: String, Int32)
  /// Another process held the lock of the directory for longer than the patience: the path of the lock, and
  /// the patience in milliseconds.
  case locked(_ path: String, Int32)
  /// The directory or the database does not meet a requirement. The text names the fault and the remedy.
  case unfit(String)

  /// Whether the database is corrupt and must be replaced.
  var isCorrupt: Bool {
    // The statements never change. One that is invalid, or violates a constraint, ran on other tables than
    // those it was written for.
    if case .database(let error) = self {
      return error.isCorrupt || error.isOtherSchema || error.breaksConstraint
    }
    return false
  }

  /// Whether another process locked the database or the directory for longer than the patience.
  var isBusy: Bool {
    switch self {
    case .database(let error): error.isBusy
    case .locked: true
    case .system, .unfit: false
    }
  }

  /// The error for users of netopt.
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
