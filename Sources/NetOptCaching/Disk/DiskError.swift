import Glibc
import NetOptCore
import NetOptSQLite

/// Why the disk cache cannot do what it should.
enum DiskError: Error {
  /// SQLite says so.
  case database(SQLiteError)
  /// The system says so: what was tried, and errno(3).
  case system(_ action: String, _ path: String, Int32)
  /// Another process has had the directory's lock for longer than we wait: the lock, and for how many milliseconds.
  case locked(_ path: String, Int32)
  /// The directory or the database is not as it must be: what, and what to do.
  case unfit(String)

  /// Whether the database is broken, so that a new one has to be begun.
  var isCorrupt: Bool {
    // The statements are always the same: one that makes no sense, or breaks a rule, met other tables than it was made for.
    if case .database(let error) = self {
      return error.isCorrupt || error.isOtherSchema || error.breaksConstraint
    }
    return false
  }

  /// Whether another process had the database, or the lock, for longer than we wait.
  var isBusy: Bool {
    switch self {
    case .database(let error): error.isBusy
    case .locked: true
    case .system, .unfit: false
    }
  }

  /// The error for those who use netopt.
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
        "the cache's \(path) has been locked by another process for more than \(milliseconds) ms; see who has it with fuser(1); \(consequence)"
      )
    case .unfit(let reason):
      return NetOptError(.unreadableFile, phase: .cache, "\(reason); \(consequence)")
    }
  }
}
