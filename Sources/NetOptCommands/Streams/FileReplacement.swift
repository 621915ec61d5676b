import Glibc
import NetOptCore

/// A file that a command writes. What is a regular file, or not there yet, is replaced when the new one is complete; until then,
/// and for good when something fails, what was there stays as it is. Anything else, such as /dev/null or a pipe, is written to
/// directly.
struct FileReplacement: ~Copyable {
  /// The file's name as messages call it.
  private let name: String
  private let draft: FileDraft

  /// Begins a file.
  ///
  /// - Parameter mode: the permissions of a new file, from which the umask takes away what it should.
  /// - Throws: `OutputError` when nothing can be written there; when the task is cancelled while nobody reads from the pipe that it is.
  init(_ name: String, mode: mode_t = 0o666) throws(OutputError) {
    if name.isEmpty { throw OutputError(kind: .refused(ENOENT), target: "a file without a name") }
    draft = try Self.draft(name, mode)
    self.name = name
  }

  /// Begins the draft. Who writes to a pipe waits for somebody to read from it, and can be interrupted meanwhile.
  private static func draft(_ name: String, _ mode: mode_t) throws(OutputError) -> FileDraft {
    while true {
      do throws(FileDraft.Failure) { return try FileDraft(of: name, mode: mode, keepsSpecial: true) } catch {
        guard error.code == ENXIO, isPipe(name) else {
          throw OutputError(kind: .refused(error.code), target: name)
        }
      }
      if Task.isCancelled { throw OutputError(kind: .cancelled, target: name) }
      // The system tells nobody that a pipe is opened for reading (fifo(7)).
      usleep(50_000)
    }
  }

  private static func isPipe(_ name: String) -> Bool {
    var status = stat()
    return stat(name, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
  }

  /// Writes all of the bytes before it returns.
  ///
  /// - Parameter isPatient: whether a task that is cancelled goes on while a pipe is full: a pipe cannot be taken back as a file can.
  func write(_ bytes: [UInt8], isPatient: Bool = false) throws(OutputError) {
    try DescriptorOutput(draft.descriptor, target: name, isPatient: isPatient).write(bytes)
  }

  /// Puts the file in its place, after its bytes are on the disk.
  consuming func commit() throws(OutputError) {
    let name = name
    do throws(FileDraft.Failure) { try draft.commit() } catch {
      throw OutputError(kind: .refused(error.code), target: name)
    }
  }
}
