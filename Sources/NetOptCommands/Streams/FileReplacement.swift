import Glibc
import NetOptCore

/// An output file of a command. `write` writes to a draft, and `commit` puts the draft in the place of the
/// file. Until then, and after a failure, an old file stays unchanged. If the name leads to something other
/// than a regular file, such as /dev/null or a pipe, there is no draft: `write` writes to it directly.
struct FileReplacement: ~Copyable {
  /// The name of the file in messages.
  private let name: String
  /// The draft. For a device or a pipe, this value has no draft file: it writes to the device or the pipe
  /// directly, and its `commit` does nothing.
  private let draft: FileDraft

  /// Creates the draft of the file.
  ///
  /// - Parameter mode: the permissions of a new file, reduced by the umask. A replaced file keeps its
  ///   permissions. Default: 0o666.
  /// - Throws: `OutputError` when the file cannot be written, and when the task is cancelled while a pipe has
  ///   no reader.
  init(_ name: String, mode: mode_t = 0o666) throws(OutputError) {
    if name.isEmpty { throw OutputError(kind: .refused(ENOENT), target: "a file without a name") }
    draft = try Self.draft(name, mode)
    self.name = name
  }

  /// Creates the draft. If the name leads to a pipe, waits until a process reads from the pipe. Cancelling
  /// the task ends the wait.
  private static func draft(_ name: String, _ mode: mode_t) throws(OutputError) -> FileDraft {
    while true {
      do throws(FileDraft.Failure) { return try FileDraft(of: name, mode: mode, keepsSpecial: true) } catch {
        guard error.code == ENXIO, isPipe(name) else {
          throw OutputError(kind: .refused(error.code), target: name)
        }
      }
      if Task.isCancelled { throw OutputError(kind: .cancelled, target: name) }
      // The system does not report when a process opens a pipe for reading (fifo(7)), so the loop tries every
      // 50 ms.
      usleep(50_000)
    }
  }

  private static func isPipe(_ name: String) -> Bool {
    var status = stat()
    return stat(name, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
  }

  /// Writes all bytes before it returns.
  ///
  /// - Parameter ignoresCancellation: whether to wait for the reader of a full pipe even after the task was
  ///   cancelled. If true, an interrupted command leaves no incomplete output in a pipe. Default: false.
  func write(_ bytes: [UInt8], ignoresCancellation: Bool = false) throws(OutputError) {
    try DescriptorOutput(draft.descriptor, target: name, ignoresCancellation: ignoresCancellation).write(
      bytes)
  }

  /// Writes the data to the disk and puts the file in its place.
  consuming func commit() throws(OutputError) {
    let name = name
    do throws(FileDraft.Failure) { try draft.commit() } catch {
      throw OutputError(kind: .refused(error.code), target: name)
    }
  }
}
