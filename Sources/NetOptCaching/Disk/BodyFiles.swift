import Glibc
import NetOptCore

/// Files for bodies that are too large for the database. The writer writes a body to a draft, syncs it to the
/// disk and renames it. Only then does a database row name the file. A file that no row names is an orphan,
/// left by a process that was killed.
struct BodyFiles: Sendable {
  private static let draftSuffix = ".part"
  /// `O_NONBLOCK`: a FIFO in place of a body must not make open(2) wait for a writer.
  private static let reading = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK

  let directory: String

  /// A file that is being written. The writer holds a lock on the file, which shows other processes that the
  /// writer is alive.
  struct Draft: ~Copyable {
    let name: String
    fileprivate let path: String
    fileprivate let descriptor: Int32

    deinit { close(descriptor) }
  }

  private func path(_ name: String) -> String { "\(directory)/\(name)" }

  /// Creates an empty draft and locks it. Returns `nil` when another process took the draft for an abandoned
  /// one before it was locked.
  private func makeDraft() throws(DiskError) -> Draft? {
    let name = Hex.text((0..<16).map { _ in UInt8.random(in: 0 ... .max) })
    let path = path(name + Self.draftSuffix)
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw .system("written", path, errno) }
    let draft = Draft(name: name, path: path, descriptor: descriptor)
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      unlink(path)
      if code == EWOULDBLOCK { return nil }
      throw .system("locked", path, code)
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_nlink > 0 else { return nil }
    return draft
  }

  /// Writes a body to a draft and syncs it to the disk. Removes the draft when that fails.
  func write(_ body: [UInt8]) throws(DiskError) -> Draft {
    while true {
      if let draft = try makeDraft() {
        try fill(draft, body)
        return draft
      }
    }
  }

  private func fill(_ draft: borrowing Draft, _ body: [UInt8]) throws(DiskError) {
    let descriptor = draft.descriptor
    var rest = body[...]
    var code: Int32 = 0
    while code == 0, !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 { code = errno == EINTR ? 0 : errno } else { rest = rest.dropFirst(count) }
    }
    if code == 0, fsync(descriptor) != 0 { code = errno }
    guard code == 0 else {
      unlink(draft.path)
      throw .system("written", draft.path, code)
    }
  }

  /// Renames a draft to its final name. Call it in the transaction that writes the row, so that no process
  /// takes the file for an orphan.
  func publish(_ draft: borrowing Draft) throws(DiskError) {
    guard rename(draft.path, path(draft.name)) == 0 else { throw .system("renamed", draft.path, errno) }
  }

  /// Removes a draft, under its draft name and its final name.
  func discard(_ draft: borrowing Draft) {
    unlink(draft.path)
    unlink(path(draft.name))
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

  /// The files that no row names, and the drafts of dead writers. Call it in a write transaction: no draft
  /// gets its final name meanwhile.
  func orphans(_ isNamed: (String) throws(DiskError) -> Bool) throws(DiskError) -> [String] {
    var orphans: [String] = []
    for name in names() {
      if name.hasSuffix(Self.draftSuffix) {
        if Self.isName(String(name.dropLast(Self.draftSuffix.count))), isAbandoned(name) {
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
      if name.hasSuffix(Self.draftSuffix) {
        // Holds the lock of the draft while removing it. Otherwise the writer of a new draft could lock the
        // file just before it is removed, and lose it.
        _ = isAbandoned(name) { unlink(path(name)) }
      } else {
        unlink(path(name))
      }
    }
  }

  /// Whether no process holds the lock of a draft.
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
