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
  /// - Throws: `OutputError` when nothing can be written there.
  init(_ name: String, mode: mode_t = 0o666) throws(OutputError) {
    if name.isEmpty { throw OutputError(kind: .refused(ENOENT), target: "a file without a name") }
    do throws(FileDraft.Failure) {
      draft = try FileDraft(of: name, mode: mode, keepsSpecial: true)
    } catch {
      throw OutputError(kind: .refused(error.code), target: name)
    }
    self.name = name
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
