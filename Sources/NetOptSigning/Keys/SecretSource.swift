import Glibc
import NetOptCore
import NetOptCrypto

/// The source of a secret.
enum SecretSource: Sendable {
  /// The secret itself, from the key ring file or from the program.
  case bytes(SecretBytes)
  /// The environment variable with this name.
  case environment(String)
  /// The standard output of this command, without a line end at its end. `/bin/sh` runs the command when the
  /// secret is first needed, with an empty standard input. What the command prints until the shell ends is
  /// the secret. netopt kills a shell that runs longer than 30 s. Standard error is discarded, because it may
  /// contain the secret.
  case command(String)

  /// The name of an environment variable as messages show it. A user may have written the secret itself in
  /// place of the name. So messages show the name only if the variable exists, or if the name has at least
  /// one `_` and otherwise only capitals and digits. Any other name is replaced by a description.
  static func shown(_ name: String) -> String {
    let isName =
      name.utf8.contains(0x5f)
      && name.utf8.allSatisfy { $0 == 0x5f || 0x41...0x5a ~= $0 || ByteClass.isDigit($0) }
    return isName || getenv(name) != nil ? name : "that its secret_env names"
  }

  /// The maximum length in bytes of a secret from a command or a key ring, and of a salt: 64 KiB.
  static let limit = 64 * 1024

  /// The longest time that a command may run, unless a caller says otherwise.
  static let patience = Duration.seconds(30)

  /// Fetches the secret. Blocks the thread for as long as a command runs.
  ///
  /// - Parameters:
  ///   - id: the id of the key, for the error.
  ///   - patience: the longest time that the command may run.
  /// - Throws: `keyUnavailable`; the detail gives the cause, and no part of the secret.
  func fetch(
    for id: String, within patience: Duration = Self.patience
  ) throws(SigningFault) -> SecretBytes {
    switch self {
    case .bytes(let bytes): return bytes
    case .environment(let name):
      guard let value = getenv(name), strlen(value) > 0 else {
        throw SigningFault(.keyUnavailable, "the environment variable \(Self.shown(name)) is not set")
      }
      return SecretBytes(count: strlen(value)) { memory in
        memory.copyMemory(from: UnsafeRawBufferPointer(start: value, count: memory.count))
      }
    case .command(let command): return try Self.output(of: command, for: id, within: patience)
    }
  }

  /// Runs the command and returns its output without a line end at the end.
  private static func output(
    of command: String, for id: String, within patience: Duration
  ) throws(SigningFault) -> SecretBytes {
    // `exec` has a line of its own, so the shell redirects standard error before it reads the command. The
    // shell's own messages about the command are then discarded too.
    guard let stream = popen("exec </dev/null 2>/dev/null\necho $$\n" + command, "re") else {
      throw SigningFault(
        .keyUnavailable,
        "the command of the key \(id) could not be started: \(String(cString: strerror(errno)))")
    }
    var output = CommandOutput()
    // Room for the first line, which is the shell's process id, and for one byte more than the limit.
    let all = SecretBytes(count: limit + 1 + CommandOutput.longestNumber) { memory in
      output.read(fileno(stream), into: memory, within: patience)
    }
    if !output.isEnded, let shell = output.shell { kill(shell, SIGKILL) }
    let status = pclose(stream)
    guard !output.isLate else {
      throw SigningFault(
        .keyUnavailable,
        "the command of the key \(id) took longer than \(patience.shown), and netopt ended it")
    }
    let count = output.count - output.start
    guard count <= limit else {
      throw SigningFault(.keyUnavailable, "the command of the key \(id) printed more than \(limit) bytes")
    }
    guard status == 0 else {
      throw SigningFault(
        .keyUnavailable,
        "the command of the key \(id) failed with \(Self.ending(status)); run it by hand to see its output, which netopt does not show because it may contain the secret"
      )
    }
    let endsLine = all.withUnsafeBytes { count > 0 && $0[output.count - 1] == 0x0a }
    let length = endsLine ? count - 1 : count
    guard length > 0 else {
      throw SigningFault(.keyUnavailable, "the command of the key \(id) printed nothing")
    }
    return all.part(output.start..<output.start + length)
  }

  /// How a command ended, from its wait(2) status.
  private static func ending(_ status: Int32) -> String {
    guard status & 0x7f == 0 else { return "signal \(status & 0x7f)" }
    let code = status >> 8 & 0xff
    // The exit codes 126 and 127: POSIX's shell, section 2.8.2.
    let meaning = code == 127 ? " (not found)" : code == 126 ? " (cannot be run)" : ""
    return "exit code \(code)\(meaning)"
  }
}
