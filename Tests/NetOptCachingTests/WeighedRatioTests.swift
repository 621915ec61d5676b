import Glibc
import NetOptCore
import TestTools
import Testing

@testable import NetOptCaching

/// Compares the hit ratio of the memory tier, limited by bytes, with that of the simulated S3-FIFO.
/// `HitRatioTests` compares the simulated policies with libCacheSim.
@Suite(.disabled(if: Sanitizer.isOn, "the replays of a trace have one thread and no pointers"))
struct WeighedRatioTests {
  /// The weight of an entry without a body, including its slot.
  private static let bare = MemorySlot.weight(of: [entry(HitRatioTests.key(1), body: 0)])

  /// An entry with a body of this many bytes, and without header fields.
  private static func entry(_ key: CacheKey, body count: Int) -> CacheEntry {
    CacheEntry(
      key: key, status: 200, fields: [:], body: [UInt8](repeating: 1, count: count), requested: 0,
      received: 0,
      fetchMicroseconds: 0)
  }

  /// The weights of entries are from 2 KB to 100 KB; larger ones are rarer. `share` is the capacity of the
  /// store as a share of the weight of all entries. The simulation gets the capacity that the store's
  /// tables leave for entries. Swift's hashes differ from process to process, and with them the shards of
  /// the keys and the sizes of the tables. So the result varies from run to run.
  @Test(
    "the hit ratio of the memory tier is within 0.003 of that of the simulation",
    arguments: [0.7, 0.9, 1.1], [0.1, 0.3])
  func hitRatio(exponent: Double, share: Double) throws {
    let keys = HitRatioTests.zipf(exponent, keys: 4000, count: 40_000, seed: 11).map { UInt64($0) }
    var entries: [UInt64: CacheEntry] = [:]
    var footprint = 0
    for key in keys where entries[key] == nil {
      var random = SplitMix64(seed: key)
      let size = Int(2000 * pow(50, Double(random.below(1000)) / 1000))
      // A body adds more to the weight than its size, because the weight includes gaps in the heap. So the
      // body is a little smaller than the wanted weight.
      let entry = Self.entry(HitRatioTests.key(key), body: max(size - Self.bare, 0) * 10 / 11)
      entries[key] = entry
      footprint += MemorySlot.weight(of: [entry])
    }
    let capacity = Int(Double(footprint) * share)
    let store = MemoryStore(CacheLimits(maxBytes: capacity))
    // The hits of the store and of the simulation.
    var (ours, theirs) = (0, 0)
    for key in keys {
      let entry = try #require(entries[key])
      if store.entries(for: entry.key).isEmpty { store.insert(entry) } else { ours += 1 }
    }
    var simulated = SimulatedPolicy.s3fifo.cache(capacity: capacity - store.usage.overhead)
    for key in keys {
      let entry = try #require(entries[key])
      if simulated.request(key, size: MemorySlot.weight(of: [entry])) { theirs += 1 }
    }
    #expect(store.usage.bytes <= capacity && store.usage.bytes > capacity / 10 * 9)
    let difference = abs(Double(ours - theirs)) / Double(keys.count)
    #expect(difference <= 0.003, "\(ours) hits, not \(theirs), of \(keys.count)")
  }
}
