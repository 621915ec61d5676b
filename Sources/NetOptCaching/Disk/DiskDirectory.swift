import Glibc
import NetOptCore

/// The directory of a disk cache. It contains the database, the lock file and the folder of large bodies. The
/// directory and the folder must belong to this user, must not be writable by others, and must not be
/// symbolic links.
struct DiskDirectory: Sendable {
  /// The path of the directory. Symbolic links in the path to it are resolved.
  let path: String
  /// The database file. SQLite keeps `-wal` and `-shm` files beside it.
  var database: String { path + "/responses.db" }
  /// The folder of large bodies, with one file for each body (`BodyFiles`).
  var bodies: String { path + "/bodies" }
  /// The path to which the store moves a corrupt database.
  var broken: String { path + "/responses.db.broken" }
  /// The path of the lock file (flock(2)). Processes hold a shared lock on it while they open the database,
  /// and an exclusive lock while they move the database aside.
  private var lock: String { path + "/lock" }

  /// Checks the directory.
  ///
  /// - Parameter mayCreate: whether to create the directory and the folder of bodies when they are missing.
  ///   If not, the directory must exist, with a database in it.
  /// - Throws: `DiskError` when the path is a symbolic link or not a directory, belongs to another user, or
  ///   is writable by others.
  init(_ path: String, mayCreate: Bool) throws(DiskError) {
    if mayCreate { try Self.make(path) }
    try Self.check(path)
    self.path = FileBytes.resolved(path)
    guard mayCreate else {
      guard access(database, F_OK) == 0 else { throw .unfit("\(path) has no cache") }
      return
    }
    if mkdir(bodies, 0o700) != 0, errno != EEXIST { throw .system("made", bodies, errno) }
    try Self.check(bodies)
  }

  /// Creates a directory and the missing directories above it, with permissions for this user only.
  private static func make(_ path: String) throws(DiskError) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    let folder = FileBytes.folder(of: path)
    guard errno == ENOENT, folder != path, folder != "/", folder != "." else {
      throw .system("made", path, errno)
    }
    try make(folder)
    if mkdir(path, 0o700) != 0, errno != EEXIST { throw .system("made", path, errno) }
  }

  /// Throws an error unless the path is a directory that belongs to this user and that others cannot write
  /// to.
  private static func check(_ path: String) throws(DiskError) {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw .system("opened", path, errno) }
    switch status.st_mode & S_IFMT {
    case S_IFDIR: break
    case S_IFLNK: throw .unfit("\(path) is a symbolic link; name the directory itself")
    default: throw .unfit("\(path) is not a directory")
    }
    guard status.st_uid == geteuid() else {
      throw .unfit("\(path) belongs to another user; use a directory of your own for the cache")
    }
    guard status.st_mode & 0o022 == 0 else {
      throw .unfit(
        "other users can write to \(path) and change what is cached there; take away that permission with chmod go-w"
      )
    }
  }

  /// Runs work while this process holds the lock of the directory. With a shared lock, no other process can
  /// move the database aside meanwhile. With an exclusive lock, no other process can open the database
  /// either.
  ///
  /// - Parameter patience: how long to wait for the lock, in milliseconds. The function blocks its thread.
  /// - Throws: `locked` when other processes hold the lock for longer than `patience`.
  func locked<Result>(
    exclusively: Bool, patience: Int32, _ work: () throws(DiskError) -> Result
  ) throws(DiskError) -> Result {
    let descriptor = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw .system("opened", lock, errno) }
    defer { close(descriptor) }
    var left = patience
    while flock(descriptor, (exclusively ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR else { throw .system("locked", lock, errno) }
      guard left > 0 else { throw .locked(lock, patience) }
      left -= 10
      usleep(10_000)
    }
    return try work()
  }

  /// The identity of the file that is now at the path of the database; `nil` when there is none.
  var databaseIdentity: Identity? {
    var status = stat()
    return lstat(database, &status) == 0 ? Identity(device: status.st_dev, file: status.st_ino) : nil
  }

  /// The device and inode number of a file. They distinguish the file from another file that replaces it at
  /// the same path.
  struct Identity: Hashable, Sendable {
    let device: UInt
    /// The inode number.
    let file: UInt
  }

  /// Moves a corrupt database to `broken`. Overwrites a database that was moved there before.
  ///
  /// - Parameters:
  ///   - identity: the identity of the database that was found corrupt. When the file at its path has another
  ///     identity, another process has already replaced it, and the file stays.
  ///   - patience: how long to wait for the lock of the directory, in milliseconds.
  /// - Returns: whether this call moved the database.
  func moveDatabaseAside(_ identity: Identity?, patience: Int32) throws(DiskError) -> Bool {
    try locked(exclusively: true, patience: patience) { () throws(DiskError) in
      guard let identity, databaseIdentity == identity else { return false }
      // Moves the log (`-wal`) first. If it stayed, SQLite would take it for the log of the next database.
      for suffix in ["-wal", "-shm", ""] {
        if rename(database + suffix, broken + suffix) != 0, errno != ENOENT {
          throw .system("put aside", database + suffix, errno)
        }
      }
      return true
    }
  }
}
