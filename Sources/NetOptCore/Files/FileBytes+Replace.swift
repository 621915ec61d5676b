import Glibc

extension FileBytes {
  /// Replaces or creates a file atomically, with a `FileDraft`. Readers find the old content or the new one.
  ///
  /// - Parameters:
  ///   - path: the path of the file.
  ///   - bytes: the new content.
  ///   - mode: the permissions of a new file, reduced by the umask. A replaced file keeps its permissions,
  ///     and its owner where the system allows that.
  ///   - isOwnedByNetopt: whether only netopt writes the file, such as a saved ranking. If true, the new file
  ///     has the permissions `mode`, and replaces a link itself, not the file that the link points to.
  ///     Default: false.
  ///   - what: what the file contains, for the message of an error: "the signature".
  ///   - phase: the phase of the error.
  /// - Throws: `NetOptError.Code.unwritableFile`, with the file and the system's reason. No draft remains.
  package static func replace(
    _ path: String, with bytes: [UInt8], mode: UInt32, isOwnedByNetopt: Bool = false, as what: String,
    in phase: NetOptError.Phase
  ) throws(NetOptError) {
    do throws(FileDraft.Failure) {
      let draft = try FileDraft(of: path, mode: mode, isOwnedByNetopt: isOwnedByNetopt)
      try draft.write(bytes)
      try draft.commit()
    } catch {
      throw failure(.unwritableFile, path, what, phase, error.code)
    }
  }

  /// Removes the drafts (`FileDraft`) of a file. A process that is killed while it replaces the file leaves
  /// its draft beside the file. Call this only while no other process replaces the file: the draft of that
  /// process would be removed too.
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
      // Match the whole name: the name of another file may begin with the name of this file.
      guard name.hasPrefix(prefix), name.hasSuffix(".part"),
        UInt64(name.dropFirst(prefix.count).dropLast(".part".count), radix: 16) != nil
      else { continue }
      unlink("\(folder)/\(name)")
    }
  }

  /// Returns how the name of each draft of a file begins: `.NAME.`
  static func draftPrefix(of path: String) -> String {
    ".\(path.split(separator: "/").last ?? "file")."
  }

  /// Writes the directory entries of a folder to the disk (fsync(2)), so that a renamed file has its new name
  /// after a crash. Ignores a failure: the system writes the entries later.
  package static func syncFolder(_ folder: String) {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }

  /// Returns the folder of a file; "." for a name without a slash.
  package static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Returns the path with all symbolic links resolved; the unchanged path if the file does not exist.
  package static func resolved(_ path: String) -> String {
    guard let real = realpath(path, nil) else { return path }
    defer { free(real) }
    return String(cString: real)
  }
}
