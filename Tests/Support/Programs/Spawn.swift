import NetOptTestSupport
import FoundationEssentials
import Glibc

/// Starts child processes with posix_spawn(3). A child inherits only the three standard descriptors. Its
/// signals are not blocked and have their default actions. Its environment has only `PATH` and `LC_ALL=C`. It
/// has its own process group, so that Ctrl-C in a terminal reaches only the tests.
enum Spawn {
  /// Starts a program.
  ///
  /// - Parameters:
  ///   - path: the path of the program.
  ///   - arguments: its arguments, without its name.
  ///   - input: the descriptor that becomes its standard input. `nil` for an empty input.
  ///   - output: the file to which standard output and standard error are appended. `nil` to discard the
  ///     output.
  /// - Returns: the process id.
  static func start(
    _ path: String, _ arguments: [String], input: Int32? = nil, output: String? = nil
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let input {
      posix_spawn_file_actions_adddup2(&actions, input, 0)
    } else {
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    }
    let flags = output == nil ? O_WRONLY : O_WRONLY | O_CREAT | O_APPEND
    posix_spawn_file_actions_addopen(&actions, 1, output ?? "/dev/null", flags, 0o600)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    // Closing a descriptor that is not open is no error here: glibc refuses only numbers that no descriptor
    // can have.
    for descriptor in 3...highestDescriptor { posix_spawn_file_actions_addclose(&actions, descriptor) }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

    var argv = copies([path] + arguments)
    var environment = copies(["PATH=\(searchPath)", "LC_ALL=C"])
    defer { (argv + environment).forEach { free($0) } }
    var id = pid_t()
    let status = posix_spawn(&id, path, &actions, &attributes, &argv, &environment)
    guard status == 0 else { throw systemError("\(path) could not be started", code: status) }
    return id
  }

  /// Finds the path of a program in `searchPath`. Throws `TestSupportError` when it is not installed.
  static func find(_ program: String) throws -> String {
    let directories = searchPath.split(separator: ":")
    guard let directory = directories.first(where: { access("\($0)/\(program)", X_OK) == 0 }) else {
      throw TestSupportError("\(program) is not installed; run scripts/install-dependencies")
    }
    return "\(directory)/\(program)"
  }

  /// Copies texts for C, and appends the null pointer that ends the list.
  private static func copies(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] {
    texts.map { strdup($0) } + [nil]
  }

  /// `PATH` with the directories of server programs, which a user's `PATH` often lacks.
  private static var searchPath: String {
    (getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin") + ":/usr/sbin:/sbin"
  }

  /// The highest open descriptor, plus 256: other threads may open further descriptors at this moment.
  private static var highestDescriptor: Int32 {
    let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return (open.compactMap { Int32($0) }.max() ?? 1023) + 256
  }
}
