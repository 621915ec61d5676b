import Glibc
import NetOptLocking
import NetOptTestSupport
import TestTools

/// A Python program in `programs` that plays faults. To tell the program which fault to play, this class
/// writes a command to a file and sends SIGUSR1 (`control.py`).
final class Program: Sendable {
  /// The file name of the program in `programs`.
  private let script: String
  private let arguments: [String]
  /// The directory for the command file and the output of the program.
  private let directory: String
  /// The running process. `startAgain` replaces it.
  private let process: Locked<ChildProcess>
  /// The number of commands so far, which is also the number of the last command.
  private let commandCount = Locked(0)

  /// The path of the file with the current command: its number and a word.
  static func controlFile(in directory: String) -> String { directory + "/control" }

  /// Starts the program, and returns when it is ready.
  ///
  /// - Parameters:
  ///   - script: the file name of the program in `programs`.
  ///   - directory: the directory for the files of the program. No other program uses it.
  ///   - arguments: all arguments of the program.
  init(_ script: String, in directory: String, _ arguments: [String]) async throws {
    self.script = script
    self.arguments = arguments
    self.directory = directory
    process = Locked(try Self.launch(script, arguments, in: directory))
    try await waitUntilReady()
  }

  /// Makes the program play a fault, and returns when the program has applied the command.
  ///
  /// - Parameter word: the word of the fault; "none" ends the current fault.
  func apply(_ word: String) async throws {
    let number = commandCount.withLock { commandCount in
      commandCount += 1
      return commandCount
    }
    try TextFile.write("\(number) \(word)\n", to: Self.controlFile(in: directory))
    let process = process.withLock { $0 }
    process.send(SIGUSR1)
    try await process.wait { TextFile.read(process.output).contains("done \(number)\n") }
  }

  func send(_ signal: Int32) { process.withLock { $0 }.send(signal) }

  /// Kills the program with SIGKILL, and returns when its process has ended.
  func kill() {
    let process = process.withLock { $0 }
    process.send(SIGKILL)
    process.stop()
  }

  /// Starts the program again after `kill`, without a fault.
  func startAgain() async throws {
    let fresh = try Self.launch(script, arguments, in: directory)
    process.withLock { $0 = fresh }
    try await waitUntilReady()
  }

  /// Ends the program with SIGTERM, and returns when its process has ended (`ChildProcess.stop`).
  func stop() { process.withLock { $0 }.stop() }

  private func waitUntilReady() async throws {
    let process = process.withLock { $0 }
    try await process.wait { TextFile.read(process.output).contains("ready\n") }
  }

  /// Starts the program with Debian's Python: another Python may be first on PATH.
  private static func launch(_ script: String, _ arguments: [String], in directory: String) throws
    -> ChildProcess
  {
    // Clears the output of an earlier process, whose "ready" would otherwise count for the new process.
    try TextFile.write("", to: "\(directory)/python3.output")
    return try ChildProcess(
      "/usr/bin/python3", ["-B", RepositoryFile.path("Tests/Faults/Servers/programs/\(script)")] + arguments,
      in: directory)
  }
}
