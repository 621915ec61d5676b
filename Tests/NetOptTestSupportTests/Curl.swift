import Foundation
import NetOptTestSupport
import TestTools

/// The result of a run of curl(1).
struct Curl {
  /// The exit code; 0 for success.
  let status: Int32
  /// The text of standard output and standard error.
  let output: String

  /// Runs curl without configuration files and proxies.
  static func run(_ arguments: [String]) async throws -> Curl {
    let process = try ChildProcess(
      "curl", ["-q", "--noproxy", "*", "-sS"] + arguments, in: TemporaryDirectory.make("curl"))
    try await wait(for: "curl to end") { process.exitStatus() != nil }
    let output = try Data(contentsOf: URL(fileURLWithPath: process.output))
    // The exit code is in the second byte of the status (wait(2)).
    return Curl(status: (process.exitStatus() ?? 0) >> 8, output: String(decoding: output, as: UTF8.self))
  }
}
