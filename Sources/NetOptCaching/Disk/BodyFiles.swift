import Glibc
import NetOptCore

/// Files for bodies that are too large for the database. The writer writes a body to a temporary file, syncs
/// it to the disk and renames it. Only then does a database row name the file. A file that no row names is an
/// orphan, left by a process that was killed.
struct BodyFiles: Sendable {
  private static let temporarySuffix = ".part"
  /// `O_NONBLOCK`: a FIFO in place of a body must not make open(2) wait for a writer.
  private static let reading = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK

  let directory: String

  /// A file that is being written. The writer holds a lock on the file, which shows other processes that the
  /// writer is alive.
  struct TemporaryFile: ~Copyable {
    let name: String
    fileprivate let path: String
    fileprivate let descriptor: Int32

    deinit { close(descriptor) }
  }

  private func path(_ name: String) -> String { "\(directory)/\(name)" }

  /// Creates an empty temporary file and locks it. Returns `nil` when another process took the file for an
  /// abandoned one before it was locked.
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

  /// Writes a body to a temporary file and syncs it to the disk. Removes the temporary file when that fails.
  func write(_ body: [UInt8]) throws(DiskError) -> TemporaryFile {
    while true {
      if let file = try makeTemporaryFile() {
        try fill(file, body)
        return file
      }
    }
  }

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

  /// Renames a temporary file to its final name. Call it in the transaction that writes the row, so that no
  /// process takes the file for an orphan.
  func publish(_ file: borrowing TemporaryFile) throws(DiskError) {
    guard rename(file.path, path(file.name)) == 0 else { throw .system("renamed", file.path, errno) }
  }

  /// Removes a temporary file, under its temporary name and its final name.
  func discard(_ file: borrowing TemporaryFile) {
    unlink(file.path)
    unlink(path(file.name))
  }

  /// Removes a body.
  func remove(_ name: String) {
    if Self.isName(name) { unlink(path(name)) }
  }

  /// The maximum size of a body to read, in bytes: half of the machine's memory. A sparse file may appear to
  /// have any length.
  private static let mostBytes = sysconf(Int32(_SC_PHYS_PAGES)) / 2 * sysconf(Int32(_SC_PAGESIZE))

  /// The bytes of a body; `nil` when there is no regular file of this length, or when the length exceeds
  /// `mostBytes`.
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

  /// The files that no row names, and the temporary files of dead writers. Call it in a write transaction: no
  /// temporary file gets its final name meanwhile.
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

  /// Removes the files that `orphans` found.
  func sweep(_ orphans: [String]) {
    for name in orphans {
      if name.hasSuffix(Self.temporarySuffix) {
        // Holds the lock of the temporary file while removing it. Otherwise the writer of a new one could
        // lock the file just before it is removed, and lose it.
        _ = isAbandoned(name) { unlink(path(name)) }
      } else {
        unlink(path(name))
      }
    }
  }

  /// Whether no process holds the lock of a temporary file.
  ///
  /// - Parameter action: runs while this process holds the lock.
  private func isAbandoned(_ name: String, _ action: () -> Void = {}) -> Bool {
    let descriptor = open(path(name), Self.reading)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
    action()
    return true
  }

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

  /// Whether a name has the form of a body's file name. The cache ignores other files.
  private static func isName(_ name: String) -> Bool {
    name.utf8.count == 32 && name.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }
}
