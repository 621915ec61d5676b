import Glibc

/// A lock between processes, of flock(2). It is given back when it goes out of scope, and when the process dies.
///
/// A file system that has no locks gives none, and nobody is kept out.
package struct FileLock: ~Copyable {
  /// What is locked.
  package enum Place {
    /// A file of its own, which is made when there is none.
    case file
    /// A folder, for files in it that are replaced and so cannot be locked themselves.
    case folder
  }

  /// How long is waited by default for who has the lock: it is held while small files are written.
  package static let patience = Duration.seconds(5)
  private static let shortestPause = Duration.milliseconds(1)
  private static let longestPause = Duration.milliseconds(50)

  private let descriptor: Int32

  /// Takes a lock. It blocks the thread for as long as it waits.
  ///
  /// - Parameters:
  ///   - path: the file or folder. A file is not looked for behind a link.
  ///   - limit: the longest wait.
  ///   - what: what is guarded by the lock, for the error.
  ///   - phase: in which that is written.
  /// - Throws: `NetOptError.Code.unwritableFile`, with `EWOULDBLOCK` when another process has the lock all the while.
  package init(
    _ path: String, _ place: Place, within limit: Duration = patience, as what: String,
    in phase: NetOptError.Phase
  ) throws(NetOptError) {
    let opened =
      switch place {
      case .file: open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
      case .folder: open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      }
    guard opened >= 0 else {
      let code = errno
      let reason = String(cString: strerror(code))
      throw NetOptError(
        .unwritableFile, phase: phase, "\(what) cannot be written: \(path) cannot be opened: \(reason)",
        underlying: NetOptError.Underlying(.system, code: code, text: reason))
    }
    guard Self.lock(opened, within: limit) else {
      close(opened)
      let reason = String(cString: strerror(EWOULDBLOCK))
      let time = limit < .seconds(1) ? "\(limit.nanoseconds / 1_000_000) ms" : "\(limit.components.seconds) s"
      throw NetOptError(
        .unwritableFile, phase: phase,
        "\(what) is locked: another process has had the lock on \(path) for \(time); it may be writing, or hang (fuser -v \(path) names it)",
        underlying: NetOptError.Underlying(.system, code: EWOULDBLOCK, text: reason), isRetryable: true)
    }
    descriptor = opened
  }

  deinit { close(descriptor) }

  /// There is no wait with a limit in flock(2), so it is asked again.
  private static func lock(_ descriptor: Int32, within limit: Duration) -> Bool {
    let clock = SystemTimeSource()
    let end = clock.now() + limit
    var pause = shortestPause
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      if errno == EINTR { continue }
      guard errno == EWOULDBLOCK else { return true }
      let rest = end - clock.now()
      guard rest > .zero else { return false }
      usleep(UInt32(max(1, min(pause, rest).nanoseconds / 1000)))
      pause = min(pause * 2, longestPause)
    }
    return true
  }
}
