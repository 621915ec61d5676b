import Glibc
import NetOptCore
import NetOptLocking

/// Wakes every thread that waits in poll(2): the reading end of a pipe, whose writing end is closed to raise it.
package final class StopSignal: Sendable {
  /// What to poll for `POLLIN`; it reports `POLLHUP` from the moment that the signal is raised.
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

  /// Raises the signal, for good.
  package func raise() {
    writingEnd.withLock { end in
      if let open = end { close(open) }
      end = nil
    }
  }
}
