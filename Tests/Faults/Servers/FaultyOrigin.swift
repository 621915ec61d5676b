import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools

/// A server of the matrix.
final class FaultyOrigin: Sendable {
  /// The server's name, which its responses contain.
  let name: String
  /// The address that clients use.
  let address: IPAddress
  private let program: Program
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

  func begin(_ fault: String) async throws { try await program.apply(fault) }

  func end() async throws { try await program.apply("none") }

  func freeze() { program.send(SIGSTOP) }

  func thaw() { program.send(SIGCONT) }

  func kill() { program.kill() }

  func startAgain() async throws { try await program.startAgain() }

  func stop() {
    thaw()
    program.stop()
  }

  /// Returns the arrivals since the last call, and removes them from the log.
  func takeArrivals() throws -> Arrivals {
    let log = TextFile.read(logFile)
    // The server only appends to the log, and writes each line at once.
    truncate(logFile, 0)
    return Arrivals(log: log)
  }

  /// Returns the same arrivals and leaves the log as it is.
  func peekArrivals() -> Arrivals { Arrivals(log: TextFile.read(logFile)) }
}

/// The requests that arrived at servers.
package struct Arrivals: Sendable, Equatable {
  /// How often servers processed each request, by id. A refused request does not count.
  package private(set) var processed: [String: Int] = [:]
  /// The ids of the requests that a server reported as not processed.
  package private(set) var refused: Set<String> = []

  package init() {}

  /// Parses a server's log. A line has time, event and id.
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
