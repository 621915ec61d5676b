import Foundation
import NetOptTestSupport
import TestTools

/// A run of curl(1).
struct Curl {
  let status: Int32
  let output: String

  /// Runs curl without configuration files and proxies.
  static func run(_ arguments: [String]) async throws -> Curl {
    let process = try ChildProcess(
      "curl", ["-q", "--noproxy", "*", "-sS"] + arguments, in: TemporaryDirectory.make("curl"))
    try await wait(for: "curl to end") { process.exitStatus() != nil }
    let output = try Data(contentsOf: URL(fileURLWithPath: process.output))
    // The exit code is in the second byte: wait(2).
    return Curl(status: (process.exitStatus() ?? 0) >> 8, output: String(decoding: output, as: UTF8.self))
  }
}
