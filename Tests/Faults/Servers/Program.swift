import Glibc
import NetOptLocking
import NetOptTestSupport
import TestTools

/// A Python program of `programs` that plays faults. It is told of them by a file and a signal.
final class Program: Sendable {
  private let script: String
  private let arguments: [String]
  private let directory: String
  private let process: Locked<ChildProcess>
  private let told = Locked(0)

  /// The file with what it is told.
  static func controlFile(in directory: String) -> String { directory + "/control" }

  /// Starts it, and returns when it is ready.
  ///
  /// - Parameters:
  ///   - script: its name.
  ///   - directory: where its files are, one of its own.
  ///   - arguments: all of them.
  init(_ script: String, in directory: String, _ arguments: [String]) async throws {
    self.script = script
    self.arguments = arguments
    self.directory = directory
    process = Locked(try Self.launch(script, arguments, in: directory))
    try await waitUntilReady()
  }

  /// Has it apply a word, and returns when that is done.
  func tell(_ word: String) async throws {
    let number = told.withLock { told in
      told += 1
      return told
    }
    try TextFile.write("\(number) \(word)\n", to: Self.controlFile(in: directory))
    let process = process.withLock { $0 }
    process.send(SIGUSR1)
    try await process.wait { TextFile.read(process.output).contains("done \(number)\n") }
  }

  func send(_ signal: Int32) { process.withLock { $0 }.send(signal) }

  /// Kills it, and returns when it is gone.
  func kill() {
    let process = process.withLock { $0 }
    process.send(SIGKILL)
    process.stop()
  }

  /// Starts it again after `kill`, without a fault.
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

  /// Debian's Python: another one may be first on PATH.
  private static func launch(_ script: String, _ arguments: [String], in directory: String) throws
    -> ChildProcess
  {
    // What an earlier run printed says nothing of this one.
    try TextFile.write("", to: "\(directory)/python3.output")
    return try ChildProcess(
      "/usr/bin/python3", ["-B", RepositoryFile.path("Tests/Faults/Servers/programs/\(script)")] + arguments,
      in: directory)
  }
}
