import FoundationEssentials
import Glibc
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCaching

/// In each round, two processes (`cache-writer`) write to one cache directory and are killed at random
/// moments. Then a new store opens the directory. It must find only intact entries, and must remove each
/// body file that belongs to no entry.
///
/// The environment variable `KILL_ROUNDS` sets the number of rounds; 20 by default.
@Suite struct CacheKillTests {
  @Test("a cache is sound after both of its writers were killed at random moments")
  func killedWriters() async throws {
    let parent = try TemporaryDirectory.make("killed-cache")
    let directory = parent + "/cache"
    let rounds = ProcessInfo.processInfo.environment["KILL_ROUNDS"].flatMap { Int($0) } ?? 20
    var random = SplitMix64(seed: UInt64(rounds))
    // The number of body files that belonged to no entry after the kills, in all rounds. Temporary files
    // are among them.
    var orphans = 0
    // The number of unfinished body files after the kills, in all rounds.
    var temporaryFiles = 0
    // The number of entries after the last round.
    var entries: Int64 = 0
    var round = 0
    // Slow machines and sanitizers need more rounds until a kill interrupts a write.
    while round < rounds || (orphans == 0 || temporaryFiles == 0) && round < 20 * rounds {
      round += 1
      let writers = try (0..<2).map { number in
        // Each round has its own output files.
        let output = "\(parent)/\(round).\(number)"
        mkdir(output, 0o700)
        return try ChildProcess(try CacheWriter.path, [directory, "\(random.next())"], in: output)
      }
      // Waits for the first writes, because the start-up time of the writers depends on the machine.
      let before = Self.size(directory)
      try await wait(for: "the writers to write") {
        for writer in writers where writer.exitStatus() != nil {
          throw TestSupportError("a writer ended: \(try Self.read(writer.output))")
        }
        return Self.size(directory) != before
      }
      usleep(UInt32(random.below(30_000)))
      writers[0].send(SIGKILL)
      // Until its own kill, the second writer continues beside the interrupted transaction of the first.
      usleep(UInt32(random.below(5_000)))
      writers[1].send(SIGKILL)
      for writer in writers {
        try await wait(for: "the writer to be dead") { writer.exitStatus() != nil }
        try #require(writer.exitStatus() == SIGKILL)
        let output = try Self.read(writer.output)
        #expect(output == "", "round \(round)")
      }
      // In the first round, the writers may have been killed before they created the tables. So the folder
      // and the tables may be missing here.
      let left = (try? FileManager.default.contentsOfDirectory(atPath: directory + "/bodies")) ?? []
      temporaryFiles += left.filter { $0.hasSuffix(".part") }.count
      orphans += (try? DiskInspection(directory).verify().orphans) ?? 0

      let warnings = Warnings()
      let store = DiskStore(directory) { warnings.add($0) }
      store.open()
      let verification = try DiskInspection(directory).verify()
      #expect(verification.isSound, "round \(round): \(verification)")
      for number in 0..<200 as Range<UInt64> {
        let key = try CacheKey(
          api: "GET https://a.test/\(number)", parameters: "number=\(number)", partition: "p\(number % 3)")
        for entry in store.entries(for: key) {
          #expect(entry.fields["X-Number"] == "\(number)")
          #expect(Self.isWhole(entry, number), "round \(round), entry \(number)")
        }
      }
      entries = try DiskInspection(directory).usage().entries
      #expect(warnings.messages.isEmpty, "round \(round): \(warnings.messages)")
      store.close()
    }
    // Orphans and temporary files show that kills interrupted writes. Without them, and without entries, the
    // test would prove nothing.
    #expect(entries > 10)
    #expect(
      orphans > 0 && temporaryFiles > 0, "\(orphans) orphans, \(temporaryFiles) of them temporary files")
  }

  /// Whether the body of an entry is intact: the writer generates the body from the number of the key and
  /// from the version in the field `X-Version`.
  private static func isWhole(_ entry: CacheEntry, _ number: UInt64) -> Bool {
    guard let version = entry.fields["X-Version"].flatMap({ UInt64($0) }) else { return false }
    var random = SplitMix64(seed: version &+ number)
    var expected: [UInt8] = []
    expected.reserveCapacity(entry.body.count)
    while expected.count < entry.body.count {
      withUnsafeBytes(of: random.next()) { expected.append(contentsOf: $0) }
    }
    return expected == entry.body
  }

  /// Two numbers of which at least one changes with each write: for the database and for its write-ahead log,
  /// the size in bytes plus the nanoseconds of the modification time; -1 for a missing file.
  private static func size(_ directory: String) -> [Int] {
    ["", "-wal"].map { suffix in
      var status = stat()
      guard stat("\(directory)/responses.db\(suffix)", &status) == 0 else { return -1 }
      return status.st_size &+ status.st_mtim.tv_nsec
    }
  }

  private static func read(_ path: String) throws -> String {
    String(decoding: try FileBytes.read(path, upTo: 1 << 20, as: "the output", in: .cache), as: UTF8.self)
  }
}
