package import Glibc

/// A file in the making. It is written beside the one whose place it is to take, as `.NAME.SOMETHING.part`, and takes that
/// place when it is complete: whoever opens the file, and whatever happens to the process or the machine, finds the old one
/// or the new one, whole. Let go of before that, it leaves nothing behind. A link stays a link: what it leads to is replaced.
package struct FileDraft: ~Copyable {
  /// Why the system did not do what it was asked for.
  package struct Failure: Error {
    /// errno(3).
    package let code: Int32
  }

  /// Where the bytes are written to.
  package let descriptor: Int32
  private let target: String
  /// Its name until it is in its place; `nil` without one.
  private var path: String?

  /// Begins a file.
  ///
  /// - Parameters:
  ///   - target: whose place it is to take.
  ///   - mode: its permissions when there was none, from which the umask takes away what it should; otherwise it keeps those,
  ///     and the owner where the system allows it.
  ///   - keepsSpecial: whether what is there and no regular file, such as /dev/null or a pipe, is written to instead of being
  ///     replaced. Writing to its descriptor does not wait then, nor does this for somebody who reads from it.
  ///   - isOwn: whether the file is netopt's own, and nobody's to lead elsewhere: a link is replaced, and permissions are
  ///     those given here.
  package init(
    of target: String, mode: mode_t, isOwn: Bool = false, keepsSpecial: Bool = false
  ) throws(Failure) {
    let target = isOwn ? target : FileBytes.resolved(target)
    var status = stat()
    let exists = !isOwn && stat(target, &status) == 0
    if keepsSpecial, exists, status.st_mode & S_IFMT != S_IFREG {
      // Of a pipe that nobody reads the system says ENXIO instead of waiting (fifo(7)).
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
      // Root's new file would not be readable to whom the old one belongs. Others may give it to a group of theirs at most.
      if fchown(descriptor, status.st_uid, status.st_gid) != 0 { _ = fchown(descriptor, .max, status.st_gid) }
      fchmod(descriptor, status.st_mode & 0o7777)
    }
    (self.target, self.path, self.descriptor) = (target, path, descriptor)
  }

  deinit {
    close(descriptor)
    if let path { unlink(path) }
  }

  /// Writes all of the bytes.
  package func write(_ bytes: [UInt8]) throws(Failure) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno != EINTR { throw Failure(code: errno) }
      rest = rest.dropFirst(max(count, 0))
    }
  }

  /// Brings the bytes to the disk (fsync(2)), then changes the name (rename(2)), and brings that to the disk too.
  package consuming func commit() throws(Failure) {
    guard let path else { return }
    guard fsync(descriptor) == 0, rename(path, target) == 0 else { throw Failure(code: errno) }
    self.path = nil
    FileBytes.syncFolder(FileBytes.folder(of: target))
  }
}
