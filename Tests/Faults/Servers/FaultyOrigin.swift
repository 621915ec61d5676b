import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools

/// A server of the matrix.
final class FaultyOrigin: Sendable {
  /// What its answers call it.
  let name: String
  /// Where clients find it.
  let address: IPAddress
  private let program: Program
  private let logFile: String

  /// Starts it.
  ///
  /// - Parameters:
  ///   - bound: the address that it listens on, when that is not the one that clients use.
  ///   - certificates: the folder with its certificates.
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

  func begin(_ fault: String) async throws { try await program.tell(fault) }

  func end() async throws { try await program.tell("none") }

  func freeze() { program.send(SIGSTOP) }

  func thaw() { program.send(SIGCONT) }

  func kill() { program.kill() }

  func startAgain() async throws { try await program.startAgain() }

  func stop() {
    thaw()
    program.stop()
  }

  /// What arrived since the log was last taken.
  func takeArrivals() throws -> Arrivals {
    let log = TextFile.read(logFile)
    // It is only appended to, and each line is written at once.
    truncate(logFile, 0)
    return Arrivals(log: log)
  }

  /// The same, without taking it.
  func peekArrivals() -> Arrivals { Arrivals(log: TextFile.read(logFile)) }
}

/// How often requests arrived at servers.
package struct Arrivals: Sendable, Equatable {
  /// How often each request was processed, by id. A request does not count when the server refused it.
  package private(set) var processed: [String: Int] = [:]
  /// The ids of requests that a server said it did not process.
  package private(set) var refused: Set<String> = []

  package init() {}

  /// Reads a server's log: moment, event, id.
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
