import Glibc

extension FileBytes {
  /// Puts a file in the place of another, or where none was, as `FileDraft` does it.
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
    do throws(FileDraft.Failure) {
      let draft = try FileDraft(of: path, mode: mode, isOwn: isOwn)
      try draft.write(bytes)
      try draft.commit()
    } catch {
      throw failure(.unwritableFile, path, what, phase, error.code)
    }
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

  static func draftPrefix(of path: String) -> String {
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
}
