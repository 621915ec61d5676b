import NetOptTestSupport
import Glibc
import Synchronization

/// Cleans up after the test process, also after a crash or SIGKILL: kills the programs that it started and
/// removes its temporary directory.
///
/// A shell reads from a pipe whose only writing end belongs to the test process. The test process writes the
/// ids of its running children to the pipe. When the test process ends for any reason, the pipe closes, and
/// the shell kills the remaining children. PR_SET_PDEATHSIG of prctl(2) does not work here: the kernel sends
/// that signal when the *thread* that started the child ends, and the threads of a pool end at any time.
final class Watchdog: Sendable {
  /// The watchdog of this process, or the error for which it could not start.
  static let shared: Result<Watchdog, any Error> = Result {
    let watchdog = try Watchdog()
    // At a normal exit, the process waits for the clean-up. After SIGKILL, nothing waits for the clean-up,
    // because the shell holds no descriptor of the tests.
    atexit {
      if case .success(let watchdog) = Watchdog.shared { watchdog.end() }
    }
    return watchdog
  }

  /// The directory that the watchdog removes at the end.
  let directory: String
  /// The process id of the shell that cleans up.
  private let shell: pid_t
  /// The writing end of the pipe from which the shell reads.
  private let pipe: Int32

  /// The program of the shell. Its argument is `directory`. It reads the lines `watch ID` and `forget ID`
  /// until the pipe closes.
  private static let script = """
    watched=' '
    while read -r verb id; do
      case $verb in
        watch) watched="$watched$id " ;;
        forget) watched="${watched%%" $id "*} ${watched#*" $id "}" ;;
      esac
    done
    for id in $watched; do kill -KILL "$id"; done
    rm -rf -- "$1"
    """

  /// Makes the directory and starts the shell.
  init() throws {
    directory = try TemporaryDirectory.make("netopt-tests", in: TemporaryDirectory.parent)
    let ends = try Pipe()
    defer { close(ends.reading) }
    pipe = ends.writing
    shell = try Spawn.start("/bin/sh", ["-c", Self.script, "watchdog", directory], input: ends.reading)
  }

  /// Closes the pipe, so that the shell cleans up now. Returns when the shell has ended.
  func end() {
    close(pipe)
    waitpid(shell, nil, 0)
  }

  /// Registers a child process. If it is still registered when this process ends, the shell kills it.
  func watch(_ id: pid_t) { send("watch \(id)\n") }

  /// Unregisters a child that has ended. Must be called before the child is reaped: after that, another
  /// process may get its id.
  func unwatch(_ id: pid_t) { send("forget \(id)\n") }

  /// Writes a line to the pipe.
  private func send(_ line: String) {
    // Short writes to a pipe are atomic (pipe(7)).
    let line = Array(line.utf8)
    _ = write(pipe, line, line.count)
  }
}
