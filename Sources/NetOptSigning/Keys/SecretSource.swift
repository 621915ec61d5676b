import Glibc
import NetOptCore
import NetOptCrypto

/// Where a secret comes from.
enum SecretSource: Sendable {
  /// The key ring itself.
  case bytes(SecretBytes)
  /// An environment variable.
  case environment(String)
  /// What a command prints up to its end, without one line end at its end. It is run by `/bin/sh` when the secret is first needed, with
  /// nothing to read. A shell that takes longer than 30 s is killed. What it says on standard error is not shown: it may be the secret.
  case command(String)

  /// The name of an environment variable as messages show it. Somebody may have written the secret itself in its place, so a name is shown only
  /// when the variable exists, or when the name has capitals, digits and a `_` alone.
  static func shown(_ name: String) -> String {
    let isName =
      name.utf8.contains(0x5f)
      && name.utf8.allSatisfy { $0 == 0x5f || 0x41...0x5a ~= $0 || ByteClass.isDigit($0) }
    return isName || getenv(name) != nil ? name : "that its secret_env names"
  }

  /// The most bytes that a secret may have.
  static let limit = 64 * 1024

  /// The longest time that a command may take.
  static let patience = Duration.seconds(30)

  /// Fetches the secret. May block for as long as a command runs.
  ///
  /// - Parameters:
  ///   - id: the key's, for the error.
  ///   - patience: how long a command may take.
  /// - Throws: `keyUnavailable`; the detail says why, and nothing of what the secret is.
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

  private static func output(
    of command: String, for id: String, within patience: Duration
  ) throws(SigningFault) -> SecretBytes {
    // By a line of its own: what is wrong with the command itself is said by the shell.
    guard let stream = popen("exec </dev/null 2>/dev/null\necho $$\n" + command, "re") else {
      throw SigningFault(
        .keyUnavailable,
        "the command of the key \(id) could not be started: \(String(cString: strerror(errno)))")
    }
    var output = CommandOutput()
    // The number of the shell's process, as it has said in its first line.
    let all = SecretBytes(count: limit + 1 + CommandOutput.longestNumber) { memory in
      output.read(fileno(stream), into: memory, within: patience)
    }
    if !output.isEnded, let shell = output.shell { kill(shell, SIGKILL) }
    let status = pclose(stream)
    guard !output.isLate else {
      throw SigningFault(
        .keyUnavailable, "the command of the key \(id) took longer than \(patience.shown), and was ended")
    }
    let count = output.count - output.start
    guard count <= limit else {
      throw SigningFault(.keyUnavailable, "the command of the key \(id) printed more than \(limit) bytes")
    }
    guard status == 0 else {
      throw SigningFault(
        .keyUnavailable,
        "the command of the key \(id) failed with \(Self.ending(status)); run it by hand to see what it says, which is not shown here as it may be the secret"
      )
    }
    let endsLine = all.withUnsafeBytes { count > 0 && $0[output.count - 1] == 0x0a }
    let length = endsLine ? count - 1 : count
    guard length > 0 else {
      throw SigningFault(.keyUnavailable, "the command of the key \(id) printed nothing")
    }
    return all.part(output.start..<output.start + length)
  }

  /// How a command ended, by its status as of wait(2).
  private static func ending(_ status: Int32) -> String {
    guard status & 0x7f == 0 else { return "signal \(status & 0x7f)" }
    let code = status >> 8 & 0xff
    // POSIX's shell, section 2.8.2.
    let meaning = code == 127 ? " (not found)" : code == 126 ? " (cannot be run)" : ""
    return "exit code \(code)\(meaning)"
  }
}
