import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Runs storms. Each storm is a child process: so it can have its own network namespace, and can check at its
/// end that no descriptor, thread or allocation is left.
///
/// `STORM_SECONDS` is the duration of each storm in seconds; default: 20. `STORM_SEED` is the first seed;
/// default: 1.
@Suite struct StormTests {
  /// The number in an environment variable; `usual` if the variable is not set or is not a number.
  private static func number(_ name: String, or usual: Int) -> Int {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? usual
  }

  /// - Parameter number: the seed of the storm is `STORM_SEED` plus this number.
  @Test("a storm ends without violations and with cached responses", arguments: [0, 1])
  func storm(_ number: Int) async throws {
    let seconds = Self.number("STORM_SECONDS", or: 20)
    let seed = Self.number("STORM_SEED", or: 1) + number
    let directory = try TemporaryDirectory.make("storm")
    let arguments = ["--seconds", "\(seconds)", "--seed", "\(seed)"]
    let storm = try ChildProcess(try Self.program, arguments, in: directory)
    try await wait(for: "the storm to end", within: .seconds(seconds * 2 + 120)) { storm.exitStatus() != nil }
    let output = TextFile.read(storm.output)
    // The filter is part of the expectation, so that the failure message shows the violations.
    #expect(output.split(separator: "\n").filter { $0.hasPrefix("VIOLATION") } == [], "\(output)")
    #expect(storm.exitStatus() == 0, "\(output)")
    // Guards against a run that tests nothing.
    #expect(output.contains("violations: none") && output.contains("from a cache"), "\(output)")
  }

  /// The path of `netopt-storm`, which is in the same directory as the program of the tests.
  private static var program: String {
    get throws {
      let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      return FileBytes.folder(of: tests) + "/netopt-storm"
    }
  }
}
