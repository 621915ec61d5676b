import Glibc

extension FileBytes {
  /// Puts a file in the place of another, or where none was: whoever opens it, and whatever happens to the process or
  /// the machine, finds the old one or the new one, whole. A link stays a link: what it leads to is replaced, unless the file is
  /// netopt's own.
  ///
  /// The bytes are written beside the file, to `.NAME.SOMETHING.part`, and brought to the disk (fsync(2)); then the
  /// name is changed (rename(2)), and that is brought to the disk too.
  ///
  /// - Parameters:
  ///   - path: the file.
  ///   - bytes: its new content.
  ///   - mode: its permissions when there was none; otherwise it keeps those, and the owner where the system allows it. The umask takes away from them what it should.
  ///   - isOwn: whether nobody else has to do with the file. Then what is in its place goes, be it a link or a pipe, and the new
  ///     file has the mode. Default: no.
  ///   - what: what the file is, for the error.
  ///   - phase: in which it is written.
  /// - Throws: `NetOptError.Code.unwritableFile`, naming the file and the system's reason. Nothing is left behind then.
  package static func replace(
    _ path: String, with bytes: [UInt8], mode: UInt32, isOwn: Bool = false, as what: String,
    in phase: NetOptError.Phase
  ) throws(NetOptError) {
    func failure(_ code: Int32) -> NetOptError {
      let reason = String(cString: strerror(code))
      return NetOptError(
        .unwritableFile, phase: phase, "\(what) \(path) cannot be written: \(reason)",
        underlying: NetOptError.Underlying(.system, code: code, text: reason))
    }
    let target = isOwn ? path : resolved(path)
    let folder = folder(of: target)
    let draft = "\(folder)/\(draftPrefix(of: target))\(String(UInt64.random(in: 0 ... .max), radix: 16)).part"
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw failure(errno) }
    var status = stat()
    if !isOwn, stat(target, &status) == 0 {
      // Root's new file would not be readable to whom the old one belongs. Others may give it to a group of theirs at most.
      if fchown(descriptor, status.st_uid, status.st_gid) != 0 { _ = fchown(descriptor, .max, status.st_gid) }
      fchmod(descriptor, status.st_mode & 0o7777)
    }
    var code = write(bytes, to: descriptor)
    if code == 0, fsync(descriptor) != 0 { code = errno }
    if close(descriptor) != 0, code == 0 { code = errno }
    if code == 0, rename(draft, target) != 0 { code = errno }
    guard code == 0 else {
      unlink(draft)
      throw failure(code)
    }
    syncFolder(folder)
  }

  /// Removes what processes that were killed while they replaced a file have left beside it. To be called only by one
  /// that knows that nobody else replaces it now.
  package static func removeDrafts(of path: String) {
    let target = resolved(path)
    let folder = folder(of: target)
    let prefix = draftPrefix(of: target)
    guard let directory = opendir(folder) else { return }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      // Exactly: another file's name may begin with this one's.
      guard name.hasPrefix(prefix), name.hasSuffix(".part"),
        UInt64(name.dropFirst(prefix.count).dropLast(".part".count), radix: 16) != nil
      else { continue }
      unlink("\(folder)/\(name)")
    }
  }

  private static func draftPrefix(of path: String) -> String {
    ".\(path.split(separator: "/").last ?? "file")."
  }

  /// Brings the names in a folder to the disk. Where that is not possible, the names get there when the system likes.
  package static func syncFolder(_ folder: String) {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }

  /// The folder that a file is in.
  package static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Where a path leads to in the end, when there is something.
  package static func resolved(_ path: String) -> String {
    guard let real = realpath(path, nil) else { return path }
    defer { free(real) }
    return String(cString: real)
  }

  /// - Returns: 0, or errno(3).
  private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno != EINTR { return errno }
      rest = rest.dropFirst(max(count, 0))
    }
    return 0
  }
}
