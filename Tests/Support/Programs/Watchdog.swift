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
  /// The watchdog of this process, or the error that prevented it.
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
  private let shell: pid_t
  private let pipe: Int32

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

  init() throws {
    directory = try TemporaryDirectory.make("netopt-tests", in: TemporaryDirectory.parent)
    let ends = try Pipe()
    defer { close(ends.reading) }
    pipe = ends.writing
    shell = try Spawn.start("/bin/sh", ["-c", Self.script, "watchdog", directory], input: ends.reading)
  }

  /// Starts the clean-up now, and returns after it.
  func end() {
    close(pipe)
    waitpid(shell, nil, 0)
  }

  /// Registers a child, which the watchdog then kills when this process ends.
  func watch(_ id: pid_t) { send("watch \(id)\n") }

  /// Unregisters a child that has ended. Must be called before the child is reaped: after that, another
  /// process may get its id.
  func unwatch(_ id: pid_t) { send("forget \(id)\n") }

  private func send(_ line: String) {
    // Short writes to a pipe are atomic (pipe(7)).
    let line = Array(line.utf8)
    _ = write(pipe, line, line.count)
  }
}
