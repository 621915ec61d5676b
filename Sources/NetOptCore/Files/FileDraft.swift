import Glibc

/// A new version of a file, which replaces the file atomically. The draft of a file NAME is a file
/// `.NAME.NUMBER.part` in the same folder, where NUMBER is random. `commit` gives the draft the name of the
/// file. So readers find either the complete old file or the complete new file, even after a crash of the
/// process or the machine. A draft that is released before `commit` is deleted. If the path is a symbolic
/// link, the draft replaces the file that the link points to.
package struct FileDraft: ~Copyable {
  /// The failure of a system call.
  package struct Failure: Error {
    /// The error number of the system (errno(3)).
    package let code: Int32

    package init(code: Int32) { self.code = code }
  }

  /// The descriptor to write to.
  package let descriptor: Int32
  /// The path of the file to replace, with all links resolved unless `isOwnedByNetopt`.
  private let target: String
  /// The path of the draft. `nil` after `commit`, and if `descriptor` is an existing special file.
  private var path: String?

  /// Creates a draft.
  ///
  /// - Parameters:
  ///   - target: the path of the file to replace.
  ///   - mode: the permissions of a new file, reduced by the umask. A replaced file keeps its permissions,
  ///     and its owner where the system allows that.
  ///   - isOwnedByNetopt: whether only netopt writes the file. If true, the draft replaces a link itself, not
  ///     the file that the link points to, and the new file has the permissions `mode`.
  ///   - keepsSpecial: whether to write directly to an existing special file, such as /dev/null or a pipe,
  ///     instead of replacing it. The descriptor of the special file is non-blocking. For a pipe that no
  ///     process reads, creating the draft fails with ENXIO.
  /// - Throws: `Failure` with the error code of the system.
  package init(
    of target: String, mode: UInt32, isOwnedByNetopt: Bool = false, keepsSpecial: Bool = false
  ) throws(Failure) {
    let target = isOwnedByNetopt ? target : FileBytes.resolved(target)
    var status = stat()
    let exists = !isOwnedByNetopt && stat(target, &status) == 0
    if keepsSpecial, exists, status.st_mode & S_IFMT != S_IFREG {
      // For a pipe without a reader, a non-blocking open fails with ENXIO instead of waiting (fifo(7)).
      let descriptor = open(target, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
      guard descriptor >= 0 else { throw Failure(code: errno) }
      (self.target, self.path, self.descriptor) = (target, nil, descriptor)
      return
    }
    let folder = FileBytes.folder(of: target)
    let path =
      "\(folder)/\(FileBytes.draftPrefix(of: target))\(String(UInt64.random(in: 0 ... .max), radix: 16)).part"
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw Failure(code: errno) }
    if exists {
      // Keep the owner: if root replaces a file, the old file's owner must still be able to read it. Other
      // users can at most set a group that they belong to.
      if fchown(descriptor, status.st_uid, status.st_gid) != 0 { _ = fchown(descriptor, .max, status.st_gid) }
      fchmod(descriptor, status.st_mode & 0o7777)
    }
    (self.target, self.path, self.descriptor) = (target, path, descriptor)
  }

  deinit {
    close(descriptor)
    if let path { unlink(path) }
  }

  /// Writes all bytes.
  package func write(_ bytes: [UInt8]) throws(Failure) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno != EINTR { throw Failure(code: errno) }
      rest = rest.dropFirst(max(count, 0))
    }
  }

  /// Puts the draft in the place of the file: writes the data to the disk (fsync(2)), renames the draft
  /// (rename(2)), and writes the folder's entry to the disk. Does nothing for a special file.
  package consuming func commit() throws(Failure) {
    guard let path else { return }
    guard fsync(descriptor) == 0, rename(path, target) == 0 else { throw Failure(code: errno) }
    self.path = nil
    FileBytes.syncFolder(FileBytes.folder(of: target))
  }
}
