import Glibc
import NetOptCore
import NetOptLocking

/// A signal that wakes every thread that waits for it in poll(2). It is the reading end of a pipe; closing
/// the writing end raises the signal.
package final class StopSignal: Sendable {
  /// The descriptor to poll for `POLLIN`. It reports `POLLHUP` as soon as the signal is raised.
  package let descriptor: Int32
  private let writingEnd: Locked<Int32?>

  package init() throws {
    let ends = try Pipe()
    descriptor = ends.reading
    writingEnd = Locked(ends.writing)
  }

  deinit {
    raise()
    close(descriptor)
  }

  /// Raises the signal permanently.
  package func raise() {
    writingEnd.withLock { end in
      if let open = end { close(open) }
      end = nil
    }
  }
}
