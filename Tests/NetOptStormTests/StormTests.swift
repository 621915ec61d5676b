import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Runs the storm in a child process, which can have its own network namespace and count its leftovers.
///
/// `STORM_SECONDS` is the duration of each storm in seconds; default: 20. `STORM_SEED` is the first seed;
/// default: 1.
@Suite struct StormTests {
  private static func number(_ name: String, or usual: Int) -> Int {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? usual
  }

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

  /// The program, which is in the same directory as the tests.
  private static var program: String {
    get throws {
      let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      return FileBytes.folder(of: tests) + "/netopt-storm"
    }
  }
}
