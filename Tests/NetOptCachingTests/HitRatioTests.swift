import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCaching

/// Compares the hits of the simulated policies with those of libCacheSim, another simulator of caches. The
/// script scripts/cache-peers installs it from PyPI.
@Suite(
  .enabled("libcachesim is not there: run scripts/cache-peers, which needs PyPI") {
    access(CachePeers.python, X_OK) == 0
  },
  .disabled(if: Sanitizer.isOn, "the replays of a trace have one thread and no pointers"))
struct HitRatioTests {
  /// Replays the trace in a file with libCacheSim (Tests/Vectors/cache-peers.py), for each policy and
  /// capacity.
  ///
  /// - Parameter capacities: the capacities of the simulated caches, in bytes.
  /// - Returns: for each policy and capacity, the number of hits, and the sum of the object sizes over all
  ///   hits in bytes. The keys have the form "s3fifo 100".
  private static func peers(_ path: String, _ capacities: [Int]) async throws -> [String: (
    hits: Int, bytes: Int
  )] {
    let script = RepositoryFile.path("Tests/Vectors/cache-peers.py")
    let child = try ChildProcess(
      CachePeers.python, [script, path] + capacities.map(String.init),
      in: try TemporaryDirectory.make("cache-peers"))
    try await wait(for: "the peers to end", within: .seconds(300)) { child.exitStatus() != nil }
    let output = String(decoding: try Data(contentsOf: URL(fileURLWithPath: child.output)), as: UTF8.self)
    try #require(child.exitStatus() == 0, "\(output)")
    var results: [String: (hits: Int, bytes: Int)] = [:]
    for line in output.split(separator: "\n") {
      let fields = line.split(separator: " ")
      let (hits, bytes) = (Int(fields[2]), Int(fields[3]))
      results["\(fields[0]) \(fields[1])"] = (try #require(hits), try #require(bytes))
    }
    return results
  }

  /// Writes the lines of a trace to a file, and compares the hits for it. `name` appears in messages.
  private static func compare(_ text: String, _ name: String) async throws {
    let path = try TemporaryDirectory.make("traces") + "/trace"
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    try await compare(file: path, name)
  }

  /// Compares the hits of each simulated policy, and of the memory tier, with those of libCacheSim. The
  /// capacities are 1, 5, 10 and 30 % of the total size of the objects in the trace; that of the memory
  /// tier is 10 %.
  private static func compare(file: String, _ name: String) async throws {
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
    let trace = try CacheTrace(bytes, file: file)
    let capacities = [0.01, 0.05, 0.1, 0.3].map { Int(Double(trace.footprint) * $0) }
    let peers = try await peers(file, capacities)
    for capacity in capacities {
      for policy in SimulatedPolicy.allCases {
        let ours = CacheReplay(trace, policy, capacity: capacity)
        let theirs = try #require(peers["\(policy.rawValue) \(capacity)"])
        let difference = abs(ours.hits - theirs.hits)
        // GDSF does not define which of two entries with equal priority is evicted first. So its hits may
        // differ by 1 % of the requests.
        let allowed = policy == .gdsf ? trace.requests.count / 100 : 0
        #expect(
          difference <= allowed, "\(name), \(policy), \(capacity): \(ours.hits) hits, not \(theirs.hits)")
        if policy != .gdsf { #expect(ours.hitBytes == theirs.bytes) }
      }
    }
    let capacity = capacities[2]
    try compare(trace, capacity, hits: try #require(peers["s3fifo \(capacity)"]).hits, name)
  }

  /// Replays the trace with the memory tier itself, including its shards and locks. The store has room for
  /// `capacity` entries, without a limit in bytes. Its hit ratio may differ from that of libCacheSim by 0.01.
  /// Skips traces whose objects have sizes other than 1, because the store ignores sizes here.
  ///
  /// - Parameter hits: the number of hits of S3-FIFO in libCacheSim with this capacity.
  private static func compare(_ trace: CacheTrace, _ capacity: Int, hits: Int, _ name: String) throws {
    guard trace.footprint == trace.keyCount else { return }
    let store = MemoryStore(CacheLimits(maxBytes: .max, maxEntries: capacity))
    var found = 0
    var keys: [UInt64: CacheKey] = [:]
    for request in trace.requests {
      let key = keys[request.key] ?? Self.key(request.key)
      keys[request.key] = key
      if store.entries(for: key).isEmpty {
        store.insert(
          CacheEntry(
            key: key, status: 200, fields: [:], body: [], requested: 0, received: 0, fetchMicroseconds: 0))
      } else {
        found += 1
      }
    }
    let difference = abs(Double(found - hits)) / Double(trace.requests.count)
    #expect(difference <= 0.01, "\(name), the store with \(capacity): \(found) hits, not \(hits)")
  }

  /// A key whose text is the number in decimal. Its digest contains the number, and is not the MD5 of the
  /// text.
  static func key(_ number: UInt64) -> CacheKey {
    let bytes = (0..<16).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * ($0 & 7))) }
    return CacheKey(text: String(number), digest: MD5Digest(bytes))
  }

  /// Returns `count` random numbers from 1 to `keys` that follow Zipf's law: the probability of a number N is
  /// proportional to 1 / N^exponent.
  static func zipf(_ exponent: Double, keys: Int, count: Int, seed: UInt64) -> [Int] {
    var sums: [Double] = []
    var total = 0.0
    for rank in 1...keys {
      total += 1 / pow(Double(rank), exponent)
      sums.append(total)
    }
    var random = SplitMix64(seed: seed)
    return (0..<count).map { _ in
      let target = Double(random.next() >> 11) / Double(1 << 53 as UInt64) * total
      var (low, high) = (0, keys - 1)
      while low < high {
        let middle = (low + high) / 2
        if sums[middle] < target { low = middle + 1 } else { high = middle }
      }
      return low + 1
    }
  }

  @Test("hit ratios equal those of libCacheSim for keys by Zipf's law", arguments: [0.7, 0.9, 1.0, 1.2])
  func zipf(exponent: Double) async throws {
    let keys = Self.zipf(exponent, keys: 10_000, count: 50_000, seed: UInt64(exponent * 10))
    try await Self.compare(keys.map { "\($0)\n" }.joined(), "zipf \(exponent)")
  }

  @Test("hit ratios equal those of libCacheSim for keys by Zipf's law with various sizes")
  func zipfWithSizes() async throws {
    let keys = Self.zipf(0.9, keys: 10_000, count: 50_000, seed: 8)
    let lines = keys.map { key -> String in
      var random = SplitMix64(seed: UInt64(key))
      // Sizes from 100 bytes to 100 KB; larger ones are rarer.
      return "\(key),\(Int(100 * pow(1000, Double(random.below(1000)) / 1000)))\n"
    }
    try await Self.compare(lines.joined(), "zipf with sizes")
  }

  @Test("hit ratios equal those of libCacheSim for a loop over 3000 keys")
  func loop() async throws {
    try await Self.compare((0..<40_000).map { "\($0 % 3000)\n" }.joined(), "loop")
  }

  @Test("hit ratios equal those of libCacheSim for keys by Zipf's law with scans between them")
  func scans() async throws {
    var lines: [String] = []
    var next = 1_000_000
    for (index, key) in Self.zipf(0.9, keys: 10_000, count: 50_000, seed: 9).enumerated() {
      lines.append("\(key)\n")
      guard index % 10_000 == 9999 else { continue }
      for _ in 0..<5000 {
        lines.append("\(next)\n")
        next += 1
      }
    }
    try await Self.compare(lines.joined(), "scans")
  }

  @Test("hit ratios equal those of libCacheSim for the traces in .build/cache-peers/traces")
  func tracesInFolder() async throws {
    for name in (try? FileManager.default.contentsOfDirectory(atPath: CachePeers.traces)) ?? [] {
      try await Self.compare(file: "\(CachePeers.traces)/\(name)", name)
    }
  }
}

/// The files of scripts/cache-peers: a Python interpreter that has libCacheSim, and a folder for more traces.
private enum CachePeers {
  static let python = RepositoryFile.path(".build/cache-peers/bin/python")
  static let traces = RepositoryFile.path(".build/cache-peers/traces")
}
