import Glibc

/// A file in the making. It is written beside the one that it shall be, and takes its place when it is complete;
/// until then, and for good when something fails, what was there stays as it is. What is no regular file, such as
/// /dev/null or a pipe, is written to directly.
struct FileReplacement: ~Copyable {
  private let descriptor: Int32
  /// The file's name as messages call it.
  private let name: String
  private let target: String
  /// The file beside the target; `nil` when the target is written to directly, or has been replaced.
  private var draft: String?

  /// Begins a file.
  ///
  /// - Parameter mode: the permissions of a new file, from which the umask takes away what it should.
  /// - Throws: `OutputError` when nothing can be written there.
  init(_ name: String, mode: mode_t = 0o666) throws(OutputError) {
    var status = stat()
    if name.isEmpty { throw OutputError(kind: .refused(ENOENT), target: "a file without a name") }
    let exists = stat(name, &status) == 0
    let kind = status.st_mode & S_IFMT
    if exists, kind == S_IFDIR { throw OutputError(kind: .refused(EISDIR), target: name) }
    // A link stays a link: what it leads to is replaced.
    let target = exists ? Self.resolved(name) : name
    let isDirect = exists && kind != S_IFREG
    let suffix = String(UInt64.random(in: 0 ... .max), radix: 16)
    let draft = isDirect ? nil : Self.folder(of: target) + ".netopt-\(suffix).part"
    let flags = draft == nil ? O_WRONLY : O_WRONLY | O_CREAT | O_EXCL
    let descriptor = open(draft ?? target, flags | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw OutputError(kind: .refused(errno), target: name) }
    if exists, !isDirect { fchmod(descriptor, status.st_mode & 0o7777) }
    (self.name, self.target, self.draft, self.descriptor) = (name, target, draft, descriptor)
  }

  deinit {
    close(descriptor)
    if let draft { unlink(draft) }
  }

  /// Writes all of the bytes before it returns.
  func write(_ bytes: [UInt8]) throws(OutputError) {
    try DescriptorOutput(descriptor, target: name).write(bytes)
  }

  /// Puts the file in its place, after its bytes are on the disk: whoever opens it finds the old one or the new one.
  consuming func commit() throws(OutputError) {
    guard let draft else { return }
    guard fsync(descriptor) == 0, rename(draft, target) == 0 else {
      throw OutputError(kind: .refused(errno), target: name)
    }
    self.draft = nil
  }

  private static func resolved(_ path: String) -> String {
    guard let real = realpath(path, nil) else { return path }
    defer { free(real) }
    return String(cString: real)
  }

  private static func folder(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
  }
}
