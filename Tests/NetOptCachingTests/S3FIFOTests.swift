import NetOptCore
import Testing

@testable import NetOptCaching

struct S3FIFOTests {
  /// A cache of keys without values. It does what the owner of `S3FIFO` must do: it keeps the index of each
  /// key, and compacts the table of nodes when it is sparse.
  private struct Cache {
    var queues: S3FIFO<Int>
    /// The index of each cached key in `queues`.
    var indices: [Int: S3FIFO<Int>.Index] = [:]

    init(capacity: Int, maxCount: Int = .max, countsTables: Bool = false) {
      queues = S3FIFO(capacity: capacity, maxCount: maxCount, countsTables: countsTables)
    }

    /// Requests a key. After a miss, inserts it with its size in bytes. Returns whether the request was a
    /// hit.
    mutating func ask(_ key: Int, size: Int = 1) -> Bool {
      if let index = indices[key] {
        queues.visit(index)
        return true
      }
      var gone: [Int] = []
      indices[key] = queues.insert(key, fingerprint: UInt64(key), size: size) { gone.append($0) }
      queues.makeRoom { gone.append($0) }
      for key in gone { indices[key] = nil }
      if queues.isSparse { queues.compact { indices[$0] = $1 } }
      return false
    }
  }

  @Test("keys that are requested several times survive a scan of other keys")
  func scan() {
    var cache = Cache(capacity: 100)
    for key in 0..<100 { _ = cache.ask(key) }
    for _ in 0..<3 { for key in 0..<50 { _ = cache.ask(key) } }
    for key in 1000..<3000 { _ = cache.ask(key) }
    let kept = (0..<50).filter { cache.indices[$0] != nil }.count
    #expect(kept == 50)
    #expect(cache.queues.count == 100)
  }

  @Test("a key that returns soon after its eviction goes to the main queue")
  func ghostHit() {
    var cache = Cache(capacity: 100)
    for key in 0..<200 { _ = cache.ask(key) }
    // The evicted keys. The last ones are still in the ghost queue.
    let gone = (0..<200).filter { cache.indices[$0] == nil }
    let back = gone.suffix(5)
    for key in back { _ = cache.ask(key) }
    // These keys are requested once, so they pass only through the small queue. The keys that returned are in
    // the main queue.
    for key in 1000..<1085 { _ = cache.ask(key) }
    #expect(back.allSatisfy { cache.indices[$0] != nil })
  }

  @Test("an entry larger than the small queue is not inserted")
  func tooLarge() {
    var cache = Cache(capacity: 1000)
    _ = cache.ask(1, size: 101)
    #expect(cache.indices[1] == nil)
    _ = cache.ask(2, size: 99)
    #expect(cache.indices[2] != nil)
  }

  @Test("the number of entries stays within its limit, and popular keys stay")
  func maxCount() {
    var cache = Cache(capacity: 1 << 40, maxCount: 20)
    for key in 0..<20 { _ = cache.ask(key) }
    for _ in 0..<2 { for key in 0..<10 { _ = cache.ask(key) } }
    for key in 100..<1000 {
      _ = cache.ask(key)
      #expect(cache.queues.count <= 20)
    }
    #expect((0..<10).filter { cache.indices[$0] != nil }.count >= 8)
  }

  @Test("the tables count against the capacity, and shrink when few large keys replace many")
  func tables() {
    var cache = Cache(capacity: 1_000_000, countsTables: true)
    for key in 0..<50_000 {
      _ = cache.ask(key, size: 100)
      #expect(cache.queues.used <= 1_000_000)
    }
    #expect(cache.queues.ghostCount == 1_000_000 / 10 / GhostQueue.mostBytesOfEach)
    #expect(cache.queues.count > 4000)
    // The memory of the tables in bytes, while they are large.
    let many = cache.queues.used - cache.queues.bytes
    #expect(many > 200_000)
    // A few large keys replace many small ones, and the tables shrink.
    for key in 50_000..<50_100 {
      // A key that is requested again moves to the main queue. There it displaces small keys.
      for _ in 0..<3 { _ = cache.ask(key, size: 90_000) }
      #expect(cache.queues.used <= 1_000_000)
    }
    #expect(cache.queues.used - cache.queues.bytes < many / 2)
    #expect(cache.queues.count >= 10)
  }

  /// Compares a cache that compacts its tables when they are sparse with one that compacts after each
  /// request.
  @Test("compacting the tables does not change which keys are kept", arguments: 0..<5 as Range<UInt64>)
  func compaction(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var (plain, compacted) = (Cache(capacity: 2000), Cache(capacity: 2000))
    for round in 0..<4000 {
      let key = Int(random.below(300))
      let size = round % 1000 < 500 ? 1 : 150
      let hit = plain.ask(key, size: size)
      #expect(compacted.ask(key, size: size) == hit)
      compacted.queues.compact { compacted.indices[$0] = $1 }
      #expect(compacted.indices.keys == plain.indices.keys)
    }
  }

  @Test(
    "a simulated policy works when the sizes of the keys add up to more than Int.max",
    arguments: SimulatedPolicy.allCases)
  func hugeSizes(policy: SimulatedPolicy) {
    var cache = policy.cache(capacity: .max)
    for size in [Int.max / 20, .max / 3, .max] {
      for key in 0..<40 { _ = cache.request(UInt64(size) &+ UInt64(key), size: size) }
    }
    _ = cache.request(1, size: 1)
    // The request before this one has inserted the key.
    let isThere = cache.request(1, size: 1)
    #expect(isThere)
  }

  /// Performs random operations on the queues and on a dictionary, which has the index and the size of each
  /// key.
  @Test("sums and limits hold, and no index is lost or used twice", arguments: 0..<20 as Range<UInt64>)
  func randomOperations(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let capacity = Int(random.below(5000) + 100)
    let maxCount = random.below(2) == 0 ? Int.max : Int(random.below(50) + 1)
    var queues = S3FIFO<Int>(capacity: capacity, maxCount: maxCount, countsTables: random.below(2) == 0)
    var known: [Int: (index: S3FIFO<Int>.Index, size: Int)] = [:]
    for _ in 0..<5000 {
      let key = Int(random.below(200))
      let size = Int(random.below(UInt64(capacity) / 8 + 1))
      var gone: [Int] = []
      switch (known[key], random.below(10)) {
      case (let there?, 0...5): queues.visit(there.index)
      case (let there?, 6...7):
        queues.remove(there.index)
        known[key] = nil
      case (let there?, _):
        known[key]?.size = size
        queues.resize(there.index, to: size) { gone.append($0) }
      case (nil, _):
        let index = queues.insert(
          key, fingerprint: UInt64(key), size: size, evicted: { gone.append($0) })
        for key in gone {
          #expect(known[key] != nil)
          known[key] = nil
        }
        gone = []
        if let index { known[key] = (index, size) }
      }
      for key in gone { known[key] = nil }
      gone = []
      if queues.isSparse || random.below(50) == 0 { queues.compact { known[$0]?.index = $1 } }
      // The tables may have grown, so that there is no more room for all keys.
      queues.makeRoom { gone.append($0) }
      for key in gone {
        #expect(known[key] != nil)
        known[key] = nil
      }
      #expect(queues.count == known.count)
      #expect(queues.bytes == known.values.reduce(0) { $0 + $1.size })
      #expect(queues.used <= capacity && queues.count <= maxCount)
      #expect(known.allSatisfy { queues[$0.value.index] == $0.key })
    }
  }
}
