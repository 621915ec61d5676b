import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// Runs the Python packages SciPy, NumPy and hdrhistogram from PyPI, against which tests check the
/// statistics.
enum BenchPeers {
  /// Why tests that need the packages are skipped.
  static let missing = "the Python packages are not there: run scripts/bench-peers, which needs PyPI"
  /// The interpreter of the virtual environment in which scripts/bench-peers installs the packages.
  private static let python = RepositoryFile.path(".build/bench-peers/bin/python")

  /// Whether the interpreter exists and can import the packages.
  static var areInstalled: Bool {
    get async throws {
      guard FileManager.default.isExecutableFile(atPath: python) else { return false }
      return try await start(["-c", "import hdrh, numpy, scipy.stats"]).status == 0
    }
  }

  /// Runs `Tests/Vectors/bench_peers.py` on data, and returns the lines of its output.
  ///
  /// - Parameters:
  ///   - question: the name of the check: "statistics" or "histograms".
  ///   - data: the data sets with netopt's results, as JSON.
  static func run(_ question: String, on data: String) async throws -> [String] {
    let file = try TemporaryDirectory.make("bench-peers") + "/data.json"
    try Data(data.utf8).write(to: URL(filePath: file))
    let (status, output) = try await start(
      [RepositoryFile.path("Tests/Vectors/bench_peers.py"), question, file])
    #expect(status == 0, "\(output)")
    return output.split(separator: "\n").map(String.init)
  }

  /// Runs the interpreter until it ends. Returns its exit status, and its standard output and standard error.
  private static func start(_ arguments: [String]) async throws -> (status: Int32?, output: String) {
    let child = try ChildProcess(python, arguments, in: try TemporaryDirectory.make("bench-peers"))
    try await wait(for: "the peers to end", within: .seconds(300)) { child.exitStatus() != nil }
    let output = try Data(contentsOf: URL(filePath: child.output))
    return (child.exitStatus(), String(decoding: output, as: UTF8.self))
  }
}

/// A source of random numbers whose sequence depends only on a seed.
struct Noise {
  private var generator: SplitMix64

  init(seed: UInt64) { generator = SplitMix64(seed: seed) }

  /// A uniformly distributed number that is greater than 0 and at most 1.
  mutating func uniform() -> Double { (Double(generator.next() >> 11) + 0.5) / 9_007_199_254_740_992 }

  /// A random number from the standard normal distribution (Box, Muller 1958).
  mutating func normal() -> Double { (-2 * log(uniform())).squareRoot() * cos(2 * .pi * uniform()) }

  /// A uniformly distributed number from 0 to `bound` - 1.
  mutating func integer(below bound: Int) -> Int { Int(generator.below(UInt64(bound))) }

  /// A stationary series with standard deviation 1. Each value is `correlation` times the previous value plus
  /// new noise.
  mutating func series(_ count: Int, correlation: Double) -> [Double] {
    var value = normal()
    let scale = (1 - correlation * correlation).squareRoot()
    return (0..<count).map { _ in
      defer { value = correlation * value + scale * normal() }
      return value
    }
  }
}
