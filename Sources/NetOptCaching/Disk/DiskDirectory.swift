import Glibc
import NetOptCore

/// The directory of a disk cache, with the database, the lock file and the folder of large bodies. The
/// directory and the folder must belong to this user and must not be symbolic links.
struct DiskDirectory: Sendable {
  /// The path of the directory, with symbolic links resolved.
  let path: String
  /// The database file. SQLite keeps `-wal` and `-shm` files beside it.
  var database: String { path + "/responses.db" }
  /// The folder of large bodies, one file for each.
  var bodies: String { path + "/bodies" }
  /// The path to which a corrupt database is moved.
  var broken: String { path + "/responses.db.broken" }
  private var lock: String { path + "/lock" }

  /// Checks the directory, and creates it when it is missing.
  ///
  /// - Parameter mayCreate: whether to create the directory. Otherwise it must exist, with a database in it.
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

  private static func make(_ path: String) throws(DiskError) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    let folder = FileBytes.folder(of: path)
    guard errno == ENOENT, folder != path, folder != "/", folder != "." else {
      throw .system("made", path, errno)
    }
    try make(folder)
    if mkdir(path, 0o700) != 0, errno != EEXIST { throw .system("made", path, errno) }
  }

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

  /// Runs work while holding the lock of the directory. With a shared lock, no other process moves the
  /// database aside meanwhile. With an exclusive lock, no other process opens it either.
  ///
  /// - Parameter patience: how long to wait for the lock, in milliseconds.
  /// - Throws: `locked` when another process holds the lock for longer.
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

  /// The identity of the database file, which distinguishes it from a replacement; `nil` when there is no
  /// file.
  var databaseIdentity: Identity? {
    var status = stat()
    return lstat(database, &status) == 0 ? Identity(device: status.st_dev, file: status.st_ino) : nil
  }

  /// The device and inode number of a file.
  struct Identity: Hashable, Sendable {
    let device: UInt
    let file: UInt
  }

  /// Moves the database aside, unless it is not the one that was found corrupt: then another process has
  /// already replaced it. A database that was moved aside before is overwritten.
  ///
  /// - Returns: whether this call moved the database.
  func moveDatabaseAside(_ identity: Identity?, patience: Int32) throws(DiskError) -> Bool {
    try locked(exclusively: true, patience: patience) { () throws(DiskError) in
      guard let identity, databaseIdentity == identity else { return false }
      // Moves the log first: SQLite would take a log that is left behind for the log of the next database.
      for suffix in ["-wal", "-shm", ""] {
        if rename(database + suffix, broken + suffix) != 0, errno != ENOENT {
          throw .system("put aside", database + suffix, errno)
        }
      }
      return true
    }
  }
}
