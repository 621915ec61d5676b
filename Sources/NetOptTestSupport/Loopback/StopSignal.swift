import Glibc
import NetOptCore
import NetOptLocking

/// A signal that wakes all threads that wait for it in poll(2). The threads poll the reading end of a pipe.
/// Closing the writing end raises the signal.
package final class StopSignal: Sendable {
  /// The reading end of the pipe. Poll it for `POLLIN`; it reports `POLLHUP` as soon as the signal is raised.
  package let descriptor: Int32
  /// The writing end of the pipe; `nil` once the signal has been raised.
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
