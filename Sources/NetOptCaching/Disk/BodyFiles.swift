import Glibc
import NetOptCore

/// The files of bodies that are too large for the database. A file has a name of 32 hexadecimal digits.
///
/// The writer writes a body to a temporary file, syncs it to the disk and renames it. The row of the entry,
/// which contains the name, is committed only after that. A file whose name is in no row is an orphan. A
/// process that was killed may leave one.
struct BodyFiles: Sendable {
  /// The end of a temporary file's name, after the 32 digits.
  private static let temporarySuffix = ".part"
  /// The flags for opening a file to read it. With `O_NONBLOCK`, open(2) does not wait for a writer when the
  /// file is a FIFO.
  private static let reading = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK

  /// The path of the directory that contains the files.
  let directory: String

  /// A file that is being written. The writer holds a lock on it (flock(2)), which shows other processes that
  /// the writer is alive. The end of this value's life closes the file, which releases the lock.
  struct TemporaryFile: ~Copyable {
    /// The final name of the file, without a directory.
    let name: String
    /// The path of the temporary file, with the suffix.
    fileprivate let path: String
    /// The descriptor of the open file, through which the writer holds the lock.
    fileprivate let descriptor: Int32

    deinit { close(descriptor) }
  }

  /// The path of the file with this name.
  private func path(_ name: String) -> String { "\(directory)/\(name)" }

  /// Creates an empty temporary file and locks it.
  ///
  /// - Returns: `nil` when another process locked or removed the file before this process locked it. That
  ///   process took it for the file of a dead writer.
  private func makeTemporaryFile() throws(DiskError) -> TemporaryFile? {
    let name = Hex.text((0..<16).map { _ in UInt8.random(in: 0 ... .max) })
    let path = path(name + Self.temporarySuffix)
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw .system("written", path, errno) }
    let file = TemporaryFile(name: name, path: path, descriptor: descriptor)
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      unlink(path)
      if code == EWOULDBLOCK { return nil }
      throw .system("locked", path, code)
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_nlink > 0 else { return nil }
    return file
  }

  /// Writes a body to a temporary file and syncs the file to the disk. Removes the file when that fails.
  func write(_ body: [UInt8]) throws(DiskError) -> TemporaryFile {
    while true {
      if let file = try makeTemporaryFile() {
        try fill(file, body)
        return file
      }
    }
  }

  /// Writes a body to an empty temporary file and syncs the file to the disk.
  private func fill(_ file: borrowing TemporaryFile, _ body: [UInt8]) throws(DiskError) {
    let descriptor = file.descriptor
    var rest = body[...]
    var code: Int32 = 0
    while code == 0, !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 { code = errno == EINTR ? 0 : errno } else { rest = rest.dropFirst(count) }
    }
    if code == 0, fsync(descriptor) != 0 { code = errno }
    guard code == 0 else {
      unlink(file.path)
      throw .system("written", file.path, code)
    }
  }

  /// Renames a temporary file to its final name. Call it in the transaction that inserts the row. Other
  /// processes look for orphans in transactions of their own, so they see the file and the row together.
  func publish(_ file: borrowing TemporaryFile) throws(DiskError) {
    guard rename(file.path, path(file.name)) == 0 else { throw .system("renamed", file.path, errno) }
  }

  /// Removes a temporary file, whether or not it has been renamed.
  func discard(_ file: borrowing TemporaryFile) {
    unlink(file.path)
    unlink(path(file.name))
  }

  /// Removes the file with this name. Ignores a name that is not the name of a body's file.
  func remove(_ name: String) {
    if Self.isName(name) { unlink(path(name)) }
  }

  /// The maximum length of a body to read, in bytes: half of the machine's memory. The limit is necessary
  /// because a sparse file can have any length.
  private static let mostBytes = sysconf(Int32(_SC_PHYS_PAGES)) / 2 * sysconf(Int32(_SC_PAGESIZE))

  /// Reads a body.
  ///
  /// - Parameter length: the length of the body in bytes, as the database records it.
  /// - Returns: `nil` when there is no regular file of this length with this name, when the length exceeds
  ///   `mostBytes`, or when the file cannot be read.
  func read(_ name: String, length: Int) -> [UInt8]? {
    guard Self.isName(name), length <= Self.mostBytes else { return nil }
    let descriptor = open(path(name), Self.reading)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size == length else {
      return nil
    }
    let bytes = [UInt8](unsafeUninitializedCapacity: length) { buffer, filled in
      while filled < length {
        let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
        let count = Glibc.read(descriptor, rest.baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return }
        filled += count
      }
    }
    return bytes.count == length ? bytes : nil
  }

  /// The names of the orphans: files of bodies whose name is in no row, and temporary files of dead writers.
  /// Call it in a write transaction. Then no writer can rename a temporary file while the function runs.
  ///
  /// - Parameter isNamed: whether a row contains this name.
  func orphans(_ isNamed: (String) throws(DiskError) -> Bool) throws(DiskError) -> [String] {
    var orphans: [String] = []
    for name in names() {
      if name.hasSuffix(Self.temporarySuffix) {
        if Self.isName(String(name.dropLast(Self.temporarySuffix.count))), isAbandoned(name) {
          orphans.append(name)
        }
      } else if Self.isName(name), try !isNamed(name) {
        orphans.append(name)
      }
    }
    return orphans
  }

  /// Removes the files that `orphans` returned.
  func sweep(_ orphans: [String]) {
    for name in orphans {
      if name.hasSuffix(Self.temporarySuffix) {
        // The lock is held until the file is removed. Otherwise the writer of a new temporary file could lock
        // it just before this process removes it, and would lose it.
        _ = isAbandoned(name) { unlink(path(name)) }
      } else {
        unlink(path(name))
      }
    }
  }

  /// Whether a temporary file exists and no process holds its lock.
  ///
  /// - Parameter action: runs while this process holds the lock; does not run for a file that is not
  ///   abandoned.
  private func isAbandoned(_ name: String, _ action: () -> Void = {}) -> Bool {
    let descriptor = open(path(name), Self.reading)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
    action()
    return true
  }

  /// The names of all entries of the directory; empty when the directory cannot be read.
  private func names() -> [String] {
    guard let folder = opendir(directory) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        })
    }
    return names
  }

  /// Whether a name is that of a body's file: 32 lowercase hexadecimal digits. The cache ignores all other
  /// files.
  private static func isName(_ name: String) -> Bool {
    name.utf8.count == 32 && name.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }
}
