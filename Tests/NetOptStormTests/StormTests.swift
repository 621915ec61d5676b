import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// The storm itself, in a process of its own, so that it may have a network of its own and count what it leaves behind.
///
/// `STORM_SECONDS` says how long each lasts; 20 s without it. `STORM_SEED` is the first seed.
@Suite struct StormTests {
  private static func number(_ name: String, or usual: Int) -> Int {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? usual
  }

  @Test("no answer is wrong, cut, late or sent twice in a storm", arguments: [0, 1])
  func nothingIsWrongInAStorm(_ number: Int) async throws {
    let seconds = Self.number("STORM_SECONDS", or: 20)
    let seed = Self.number("STORM_SEED", or: 1) + number
    let directory = try TemporaryDirectory.make("storm")
    let arguments = ["--seconds", "\(seconds)", "--seed", "\(seed)"]
    let storm = try ChildProcess(try Self.program, arguments, in: directory)
    try await wait(for: "the storm to end", within: .seconds(seconds * 2 + 120)) { storm.exitStatus() != nil }
    let output = TextFile.read(storm.output)
    // In the expectation itself, so that the line that says it failed says why.
    #expect(output.split(separator: "\n").filter { $0.hasPrefix("VIOLATION") } == [], "\(output)")
    #expect(storm.exitStatus() == 0, "\(output)")
    // Otherwise nothing was tested.
    #expect(output.contains("violations: none") && output.contains("from a cache"), "\(output)")
  }

  /// It is built into the directory of the tests.
  private static var program: String {
    get throws {
      let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      return FileBytes.folder(of: tests) + "/netopt-storm"
    }
  }
}
