import Glibc
import NetOptCore

/// The directory of a disk cache and what is in it: the database, the lock, the folder of large bodies. It belongs to this
/// user alone, and no symbolic link in it is followed.
struct DiskDirectory: Sendable {
  /// The directory without links on the way.
  let path: String
  /// SQLite's file; beside it SQLite keeps `-wal` and `-shm`.
  var database: String { path + "/responses.db" }
  /// Large bodies, a file each.
  var bodies: String { path + "/bodies" }
  /// Where a broken database is put.
  var broken: String { path + "/responses.db.broken" }
  private var lock: String { path + "/lock" }

  /// Looks at the directory, and makes it when it is not there.
  ///
  /// - Parameter mayCreate: whether it is made; otherwise it must be there, with a database in it.
  /// - Throws: when it is a link or no directory, belongs to somebody else, or others may write to it.
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
    default: throw .unfit("\(path) is no directory")
    }
    guard status.st_uid == geteuid() else {
      throw .unfit("\(path) belongs to another user; a cache is its user's own")
    }
    guard status.st_mode & 0o022 == 0 else {
      throw .unfit(
        "others may write to \(path), and so to what is cached there; take that away with chmod go-w")
    }
  }

  /// Does something while nobody sets the database aside, or, exclusively, while nobody else opens it either.
  ///
  /// - Parameter patience: for how long the lock is waited for, in milliseconds.
  /// - Throws: `locked` when somebody keeps the lock for longer.
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

  /// What tells the database from another one in its place; `nil` when there is none.
  var databaseIdentity: Identity? {
    var status = stat()
    return lstat(database, &status) == 0 ? Identity(device: status.st_dev, file: status.st_ino) : nil
  }

  /// A file's device and number.
  struct Identity: Hashable, Sendable {
    let device: UInt
    let file: UInt
  }

  /// Puts the database out of the way, unless it is another than the one that was found broken: then somebody else has done
  /// it. What was put aside before is replaced.
  ///
  /// - Returns: whether it was put aside by this call.
  func setAside(_ identity: Identity?, patience: Int32) throws(DiskError) -> Bool {
    try locked(exclusively: true, patience: patience) { () throws(DiskError) in
      guard let identity, databaseIdentity == identity else { return false }
      // The log first: one that is left behind would be taken for that of the next database.
      for suffix in ["-wal", "-shm", ""] {
        if rename(database + suffix, broken + suffix) != 0, errno != ENOENT {
          throw .system("put aside", database + suffix, errno)
        }
      }
      return true
    }
  }
}
