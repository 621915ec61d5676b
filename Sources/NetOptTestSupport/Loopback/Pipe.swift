import Glibc

/// The two ends of a pipe(7), as descriptors. The owner of the value closes them. Child processes do not
/// inherit them.
package struct Pipe {
  /// The descriptor to read from.
  package let reading: Int32
  /// The descriptor to write to.
  package let writing: Int32

  /// Opens a pipe.
  package init() throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw systemError("no pipe") }
    (reading, writing) = (ends[0], ends[1])
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
  }
}
