import NetOptTestSupport
import Glibc
import Synchronization

/// Cleans up after the test process, also when it crashes or is killed: ends the programs that it started and removes
/// its temporary directory.
///
/// A shell reads from a pipe of which this process holds the only writing end. It is told which children run; when
/// the pipe is closed, by whatever ends this process, it kills those that are left. The kernel's own means,
/// PR_SET_PDEATHSIG of prctl(2), is no good here: its signal comes when the *thread* that started the child ends,
/// and threads of a pool end at any time.
final class Watchdog: Sendable {
  /// The only one of this process, or why there is none.
  static let shared: Result<Watchdog, any Error> = Result {
    let watchdog = try Watchdog()
    // An ordinary end waits for the clean-up. Nobody waits for it when the process is killed: the shell holds no
    // descriptor of the tests'.
    atexit {
      if case .success(let watchdog) = Watchdog.shared { watchdog.end() }
    }
    return watchdog
  }

  /// The directory that is removed in the end.
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

  /// Lets it do its work now, and returns when that is done.
  func end() {
    close(pipe)
    waitpid(shell, nil, 0)
  }

  /// Has a child killed when this process ends.
  func watch(_ id: pid_t) { tell("watch \(id)\n") }

  /// Says that a child has ended. To be called before the child is reaped: from then on its number may belong to
  /// another process.
  func forget(_ id: pid_t) { tell("forget \(id)\n") }

  private func tell(_ line: String) {
    // Short writes to a pipe are atomic: pipe(7).
    let line = Array(line.utf8)
    _ = write(pipe, line, line.count)
  }
}
