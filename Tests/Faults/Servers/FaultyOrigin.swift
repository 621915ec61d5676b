import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools

/// A server of the fault matrix: a process that runs `origin.py`.
final class FaultyOrigin: Sendable {
  /// The server's name, which its responses contain in the field `X-Origin`.
  let name: String
  /// The address that clients use.
  let address: IPAddress
  private let program: Program
  /// The path of the file to which the server writes its events.
  private let logFile: String

  /// Starts the server.
  ///
  /// - Parameters:
  ///   - bound: the address on which the server listens, if it differs from the address that clients use.
  ///   - certificates: the folder with the server's certificates.
  init(
    _ name: String, at address: IPAddress, bound: IPAddress? = nil, port: UInt16, certificates: String
  ) async throws {
    self.name = name
    self.address = address
    let directory = try TemporaryDirectory.make("origin")
    logFile = directory + "/log"
    program = try await Program(
      "origin.py", in: directory,
      [name, "\(bound ?? address)", "\(port)", certificates, Program.controlFile(in: directory), logFile])
  }

  /// Begins a fault, and returns when it is active.
  ///
  /// - Parameter fault: a word of `origin.py`, as in `Fault.Location.origin`.
  func begin(_ fault: String) async throws { try await program.apply(fault) }

  /// Ends the fault, and returns when the server works again.
  func end() async throws { try await program.apply("none") }

  /// Stops the process with SIGSTOP. It keeps its sockets.
  func freeze() { program.send(SIGSTOP) }

  /// Lets a stopped process continue.
  func thaw() { program.send(SIGCONT) }

  /// Kills the process, and returns when it has ended.
  func kill() { program.kill() }

  /// Starts the server again after `kill`, and returns when it is ready.
  func startAgain() async throws { try await program.startAgain() }

  /// Ends the process for good.
  func stop() {
    thaw()
    program.stop()
  }

  /// Returns the arrivals since the last call, and removes them from the log.
  func takeArrivals() throws -> Arrivals {
    let log = TextFile.read(logFile)
    // The server appends each line with one write, so it continues at the new end of the file.
    truncate(logFile, 0)
    return Arrivals(log: log)
  }

  /// Returns the arrivals since the last call of `takeArrivals`, and leaves the log as it is.
  func peekArrivals() -> Arrivals { Arrivals(log: TextFile.read(logFile)) }
}

/// The requests that arrived at servers.
package struct Arrivals: Sendable, Equatable {
  /// How often servers began to process each request, by id. A refused request does not count.
  package private(set) var processed: [String: Int] = [:]
  /// The ids of the requests that a server refused: it told the client that it did not process them.
  package private(set) var refused: Set<String> = []

  package init() {}

  /// Parses a server's log (`origin.py`). Each line has a time, an event and an id. Other lines are skipped.
  package init(log: String) {
    for line in log.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count == 3 else { continue }
      switch words[1] {
      case "arrive": processed[String(words[2]), default: 0] += 1
      case "refuse": refused.insert(String(words[2]))
      default: break
      }
    }
  }

  package mutating func add(_ other: Arrivals) {
    processed.merge(other.processed, uniquingKeysWith: +)
    refused.formUnion(other.refused)
  }
}
