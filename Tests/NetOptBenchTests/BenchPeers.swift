import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// SciPy, NumPy and hdrhistogram from PyPI.
enum BenchPeers {
  static let missing = "the Python packages are not there: run scripts/bench-peers, which needs PyPI"
  private static let python = RepositoryFile.path(".build/bench-peers/bin/python")

  static var areInstalled: Bool {
    get async throws {
      guard FileManager.default.isExecutableFile(atPath: python) else { return false }
      return try await start(["-c", "import hdrh, numpy, scipy.stats"]).status == 0
    }
  }

  /// What they print about data, a line each.
  static func run(_ question: String, on data: String) async throws -> [String] {
    let file = try TemporaryDirectory.make("bench-peers") + "/data.json"
    try Data(data.utf8).write(to: URL(filePath: file))
    let (status, output) = try await start(
      [RepositoryFile.path("Tests/Vectors/bench_peers.py"), question, file])
    #expect(status == 0, "\(output)")
    return output.split(separator: "\n").map(String.init)
  }

  private static func start(_ arguments: [String]) async throws -> (status: Int32?, output: String) {
    let child = try ChildProcess(python, arguments, in: try TemporaryDirectory.make("bench-peers"))
    try await wait(for: "the peers to end", within: .seconds(300)) { child.exitStatus() != nil }
    let output = try Data(contentsOf: URL(filePath: child.output))
    return (child.exitStatus(), String(decoding: output, as: UTF8.self))
  }
}

/// Noise whose sequence follows from a seed.
struct Noise {
  private var generator: SplitMix64

  init(seed: UInt64) { generator = SplitMix64(seed: seed) }

  /// A number from 0 up to 1, without 0.
  mutating func uniform() -> Double { (Double(generator.next() >> 11) + 0.5) / 9_007_199_254_740_992 }

  /// A number of the standard normal distribution (Box, Muller 1958).
  mutating func normal() -> Double { (-2 * log(uniform())).squareRoot() * cos(2 * .pi * uniform()) }

  mutating func integer(below bound: Int) -> Int { Int(generator.below(UInt64(bound))) }

  /// A stationary series of standard deviation 1 in which each value is `correlation` of the one before, and something new.
  mutating func series(_ count: Int, correlation: Double) -> [Double] {
    var value = normal()
    let scale = (1 - correlation * correlation).squareRoot()
    return (0..<count).map { _ in
      defer { value = correlation * value + scale * normal() }
      return value
    }
  }
}
