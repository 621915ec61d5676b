import Glibc
import NetOptLocking
import NetOptTestSupport
import TestTools

/// A Python program in `programs` that plays faults. A file and a signal tell it which fault to play.
final class Program: Sendable {
  private let script: String
  private let arguments: [String]
  private let directory: String
  private let process: Locked<ChildProcess>
  private let commandCount = Locked(0)

  /// The file with the current command.
  static func controlFile(in directory: String) -> String { directory + "/control" }

  /// Starts the program, and returns when it is ready.
  ///
  /// - Parameters:
  ///   - script: the name of the script.
  ///   - directory: the directory for its files, which no other program uses.
  ///   - arguments: all arguments of the script.
  init(_ script: String, in directory: String, _ arguments: [String]) async throws {
    self.script = script
    self.arguments = arguments
    self.directory = directory
    process = Locked(try Self.launch(script, arguments, in: directory))
    try await waitUntilReady()
  }

  /// Makes the program apply a word, and returns when the program has done so.
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

  /// Kills the program, and returns when its process has ended.
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

  func stop() { process.withLock { $0 }.stop() }

  private func waitUntilReady() async throws {
    let process = process.withLock { $0 }
    try await process.wait { TextFile.read(process.output).contains("ready\n") }
  }

  /// Runs Debian's Python: another Python may be first on PATH.
  private static func launch(_ script: String, _ arguments: [String], in directory: String) throws
    -> ChildProcess
  {
    // The output of an earlier run must not be taken for the output of this one.
    try TextFile.write("", to: "\(directory)/python3.output")
    return try ChildProcess(
      "/usr/bin/python3", ["-B", RepositoryFile.path("Tests/Faults/Servers/programs/\(script)")] + arguments,
      in: directory)
  }
}
