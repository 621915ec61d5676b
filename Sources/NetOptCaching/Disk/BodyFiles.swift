import Glibc
import NetOptCore

/// Bodies that are too large for the database. One is written to a draft, brought to the disk and renamed; a row of the
/// database names it only then. What no row names is an orphan, left by a process that was killed.
struct BodyFiles: Sendable {
  private static let draftSuffix = ".part"
  /// Without waiting for a writer, should a FIFO be in a body's place (open(2)).
  private static let reading = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK

  let directory: String

  /// A file that is being written. Its lock tells others that its writer lives.
  struct Draft: ~Copyable {
    let name: String
    fileprivate let path: String
    fileprivate let descriptor: Int32

    deinit { close(descriptor) }
  }

  private func path(_ name: String) -> String { "\(directory)/\(name)" }

  /// Makes an empty draft and locks it. `nil` when another process has taken it for an abandoned one before it was locked.
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

  /// Writes a body to a draft and brings it to the disk. Nothing is left of it when that fails.
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

  /// Gives a draft its name. To be called in the transaction that writes the row, so that nobody takes it for an orphan.
  func publish(_ draft: borrowing Draft) throws(DiskError) {
    guard rename(draft.path, path(draft.name)) == 0 else { throw .system("renamed", draft.path, errno) }
  }

  /// Removes a draft, whether it has its name already or not.
  func discard(_ draft: borrowing Draft) {
    unlink(draft.path)
    unlink(path(draft.name))
  }

  /// Removes a body.
  func remove(_ name: String) {
    if Self.isName(name) { unlink(path(name)) }
  }

  /// The largest body that is read: half of the machine's memory. A file with holes may seem to have any length.
  private static let mostBytes = sysconf(Int32(_SC_PHYS_PAGES)) / 2 * sysconf(Int32(_SC_PAGESIZE))

  /// The bytes of a body; `nil` when there is no file of this length, or it is too large to be one.
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

  /// What no row names, of writers that are dead. To be called in a transaction that writes: no draft gets its name then.
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

  /// Removes what `orphans` has found.
  func sweep(_ orphans: [String]) {
    for name in orphans {
      if name.hasSuffix(Self.draftSuffix) {
        // A draft is locked until it is removed: one that its writer had just made, and locks now, would be lost.
        _ = isAbandoned(name) { unlink(path(name)) }
      } else {
        unlink(path(name))
      }
    }
  }

  /// Whether nobody has the lock of a draft.
  ///
  /// - Parameter action: is done while the lock is held, when nobody else has it.
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

  /// Files that are called otherwise are none of ours.
  private static func isName(_ name: String) -> Bool {
    name.utf8.count == 32 && name.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }
}
