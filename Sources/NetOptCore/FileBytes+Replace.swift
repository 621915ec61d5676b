import Glibc

extension FileBytes {
  /// Puts a file in its place: whoever opens it finds the old one or the new one, whole, whatever happens meanwhile to this
  /// process or the machine.
  ///
  /// - Parameters:
  ///   - path: the file. What was there is replaced.
  ///   - bytes: what it is to hold.
  ///   - mode: its permissions; the umask takes away from them what it should.
  ///   - what: what the file is, for the error.
  ///   - phase: in which it is written.
  /// - Throws: `NetOptError.Code.unwritableFile`, naming the file and the system's reason.
  package static func replace(
    _ path: String, with bytes: [UInt8], mode: UInt32, as what: String, in phase: NetOptError.Phase
  ) throws(NetOptError) {
    let slash = path.lastIndex(of: "/")
    let name = slash.map { path[path.index(after: $0)...] } ?? path[...]
    let folder = slash.map { String(path[...$0]) } ?? ""
    // A name of its own for each writer: two processes may do this at once.
    let draft = "\(folder).\(name).\(String(UInt64.random(in: 0 ... .max), radix: 16)).part"
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw Self.failure(.unwritableFile, path, what, phase, errno) }
    var failure = write(bytes, to: descriptor)
    if failure == nil, fsync(descriptor) != 0 { failure = errno }
    close(descriptor)
    if failure == nil, rename(draft, path) != 0 { failure = errno }
    guard let failure else { return }
    unlink(draft)
    throw Self.failure(.unwritableFile, path, what, phase, failure)
  }

  /// - Returns: the system's reason when it failed.
  private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { return errno }
      rest = rest.dropFirst(count)
    }
    return nil
  }
}
