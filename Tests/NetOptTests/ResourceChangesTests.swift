import NetOptCaching
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests `ResourceChanges`, which keeps the cache from storing a response that something newer has overtaken.
/// In these tests, the start of a fetch is a number: nanoseconds on the monotonic clock.
@Suite struct ResourceChangesTests {
  /// The cache key of the resource with a number.
  private static func key(_ number: Int) throws -> CacheKey {
    try CacheKey(api: "GET https://a.test/\(number)", parameters: "", partition: "")
  }

  private static func moment(_ number: Int) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: Int64(number))
  }

  @Test("a response is not stored after a later one, however many other resources are answered between")
  func manyResources() throws {
    let changes = ResourceChanges()
    let key = try Self.key(0)
    /// Stores a response whose fetch began at `begun`, unless it was overtaken. Returns whether it was
    /// stored.
    func store(_ key: CacheKey, begun: Int) -> Bool {
      var isStored = false
      _ = changes.storeUnlessOvertaken(key, [], since: 0, begun: Self.moment(begun)) { isStored = true }
      return isStored
    }
    #expect(store(key, begun: 2))
    // More resources than all 256 shards keep together, which is 65,536.
    for number in 1...70_000 { #expect(store(try Self.key(number), begun: number + 2)) }
    #expect(!store(key, begun: 1))
    #expect(store(key, begun: 80_000))
  }

  @Test("the record of a resource takes limited memory, however long the names of its variants are")
  func longNames() throws {
    let changes = ResourceChanges()
    let before = ProcessFootprint.now.memoryBytes
    for number in 0..<2000 {
      // All names together have 128 MB.
      let selectors = (0..<64).map {
        CacheEntry.Selector(name: String(repeating: "x", count: 1000) + "\(number) \($0)", value: nil)
      }
      _ = changes.storeUnlessOvertaken(
        try Self.key(number), selectors, since: 0, begun: Self.moment(number)
      ) {}
    }
    #expect(ProcessFootprint.now.memoryBytes - before < 20 << 20)
  }

  @Test(
    "a response is not stored when a newer one can match the same request", arguments: UInt64(1)...20)
  func variants(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let changes = ResourceChanges()
    let key = try Self.key(0)
    // All responses that callers have seen, stored or not: the selectors of the variant, and the start of the
    // fetch.
    var known: [(selectors: [CacheEntry.Selector], begun: Int)] = []
    var stored = 0
    // The number of changes so far.
    var count: UInt32 = 0
    for step in 1...400 {
      // Responses come in another order than that in which their fetches began.
      let begun = step + Int(random.below(40))
      let selectors = ["a", "b"].compactMap { name in
        random.below(8) == 0 ? nil : CacheEntry.Selector(name: name, value: "\(random.below(2))")
      }
      if random.below(30) == 0 {
        changes.recordChange(of: key)
        count += 1
      }
      if random.below(20) == 0 {
        changes.recordUnstoredResponse(for: key, begun: Self.moment(begun))
        known.append(([], begun))
        continue
      }
      // Some calls began before the last change.
      let since = count - (random.below(10) == 0 ? min(count, 1) : 0)
      _ = changes.storeUnlessOvertaken(key, selectors, since: since, begun: Self.moment(begun)) {
        stored += 1
        #expect(since == count)
        // The responses to later fetches that may match the same request: they have no selector of the same
        // name with another value.
        let newer = known.filter { known in
          known.begun > begun
            && selectors.allSatisfy { mine in
              known.selectors.allSatisfy { $0.name != mine.name || $0 == mine }
            }
        }
        #expect(newer.isEmpty, "step \(step)")
      }
      known.append((selectors, begun))
    }
    #expect(stored > 40)
  }
}

/// Tests what `ResourceChanges` knows about removals by the program.
@Suite struct RemovalRecordTests {
  @Test("a removal concerns its URL and fetches before it only, and very many removals concern everything")
  func removals() throws {
    let changes = ResourceChanges()
    let url = try HTTPURL("https://a.test/a?q=1")
    let key = try RequestKey.url(url, partition: "p")
    let other = try RequestKey.url(HTTPURL("https://a.test/b?q=1"), partition: "p")
    let before = changes.removalCount
    changes.recordRemoval(of: try CacheSelection(url: url))
    let after = changes.removalCount
    #expect(changes.isRemoved(key, nil, since: before) && !changes.isRemoved(key, nil, since: after))
    #expect(!changes.isRemoved(other, nil, since: before))
    #expect(changes.isRemoved(other, ResourceHash.of(url, isNamed: true), since: before))
    for number in 0..<1023 { changes.recordRemoval(of: .name("\(number)")) }
    #expect(changes.isRemoved(key, nil, since: before) && !changes.isRemoved(other, nil, since: before))
    changes.recordRemoval(of: .name("one more"))
    #expect(changes.isRemoved(other, nil, since: before) && !changes.isRemoved(key, nil, since: after))
  }

  @Test("the record of removals takes limited memory, also for URLs with very many parameters")
  func manyParameters() throws {
    let query = (0..<8000).map { "\($0)=1" }.joined(separator: "&")
    let selection = try CacheSelection(url: try HTTPURL("https://a.test/?" + query))
    let changes = ResourceChanges()
    let before = changes.removalCount
    for _ in 0..<100 { changes.recordRemoval(of: selection) }
    #expect(selection.weight > 16_000)
    let last = changes.removalCount
    #expect(changes.isRemoved(try CacheKey(api: "x", parameters: ""), nil, since: before))
    #expect(!changes.isRemoved(try CacheKey(api: "x", parameters: ""), nil, since: last - 1))
  }
}
