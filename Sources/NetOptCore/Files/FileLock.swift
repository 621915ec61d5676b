import Glibc

/// An exclusive lock between processes (flock(2)). The lock is released when the value goes out of scope, and
/// when the process ends.
///
/// On a file system that does not support locks, `init` succeeds without a lock.
package struct FileLock: ~Copyable {
  /// The kind of path that is locked.
  package enum Kind {
    /// A file that exists only for the lock. It is created if it does not exist.
    case file
    /// The folder of the protected files. Used for files that are replaced: a lock on such a file would stay
    /// with the old file.
    case folder
  }

  /// The default time limit for acquiring a lock. Processes hold a lock only while they write small files.
  package static let defaultTimeout = Duration.seconds(5)
  /// The first pause between two tries to acquire the lock. Each further pause is twice as long.
  private static let shortestPause = Duration.milliseconds(1)
  /// The maximum length of a pause.
  private static let longestPause = Duration.milliseconds(50)

  /// The descriptor that holds the lock. Closing it releases the lock.
  private let descriptor: Int32

  /// Acquires a lock. Blocks the thread while it waits.
  ///
  /// - Parameters:
  ///   - path: the path of the file or folder. A lock file that is a symbolic link is an error.
  ///   - limit: the maximum time to wait. Default: `defaultTimeout`.
  ///   - what: what the lock protects, for the message of an error: "the key ring".
  ///   - phase: the phase of the error.
  /// - Throws: `NetOptError.Code.unwritableFile`, with `EWOULDBLOCK` if another process held the lock during
  ///   the whole time.
  package init(
    _ path: String, _ kind: Kind, within limit: Duration = defaultTimeout, as what: String,
    in phase: NetOptError.Phase
  ) throws(NetOptError) {
    let opened =
      switch kind {
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
        "\(what) is locked: another process has held the lock on \(path) for \(time); it may be writing, or hang; to find it, run: fuser -v \(path)",
        underlying: NetOptError.Underlying(.system, code: EWOULDBLOCK, text: reason), isRetryable: true)
    }
    descriptor = opened
  }

  deinit { close(descriptor) }

  /// Tries to acquire the lock again and again, because flock(2) has no time limit.
  ///
  /// - Returns: false if another process held the lock during the whole time. True if the lock was acquired,
  ///   and if the file system does not support locks.
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
