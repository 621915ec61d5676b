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
      let storage = changes.storeUnlessOvertaken(key, [], since: 0, begun: Self.moment(begun)) {
        isStored = true
      }
      #expect((storage == .stored) == isStored && storage != .unknown)
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
  /// Records a removal that begins and ends.
  private static func remove(_ selection: CacheSelection, _ changes: ResourceChanges) {
    changes.endRemoval(changes.beginRemoval(of: selection))
  }

  @Test("a removal concerns calls that begin while it runs, and no call that begins after its end")
  func intervals() throws {
    let changes = ResourceChanges()
    let key = try CacheKey(api: "x", parameters: "")
    let other = try CacheKey(api: "y", parameters: "")
    let before = changes.removalCount
    func removals(since count: UInt64) -> [ResourceChanges.Removal] {
      [key, other].map { changes.removal(of: $0, 1, since: count) }
    }
    #expect(!changes.isRemoving && removals(since: before) == [.none, .none])
    let first = changes.beginRemoval(of: .name("x"))
    let during = changes.removalCount
    #expect(changes.isRemoving && removals(since: during) == [.removed, .none])
    // Another removal begins later and ends earlier.
    let second = changes.beginRemoval(of: .name("y"))
    #expect(removals(since: during) == [.removed, .removed])
    changes.endRemoval(second)
    let between = changes.removalCount
    #expect(changes.isRemoving)
    #expect(
      removals(since: during) == [.removed, .removed] && removals(since: between) == [.removed, .none])
    // The record keeps a removal that runs, however many others end meanwhile.
    for _ in 0..<2000 { Self.remove(.name("z"), changes) }
    #expect(removals(since: changes.removalCount) == [.removed, .none])
    #expect(removals(since: during) == [.removed, .unknown])
    changes.endRemoval(first)
    #expect(!changes.isRemoving)
    #expect(removals(since: between) == [.removed, .unknown])
    #expect(removals(since: changes.removalCount) == [.none, .none])
  }

  @Test("a response is not stored if its removal runs or may have been dropped from the record")
  func storing() throws {
    let changes = ResourceChanges()
    let key = try CacheKey(api: "x", parameters: "")
    func store(since count: UInt64) -> ResourceChanges.Storage {
      var isStored = false
      let storage = changes.storeUnlessOvertaken(
        key, [], since: 0, begun: MonotonicInstant(nanoseconds: 1),
        removal: { changes.removal(of: key, 1, since: count) }
      ) { isStored = true }
      #expect(isStored == (storage == .stored))
      return storage
    }
    let before = changes.removalCount
    #expect(store(since: before) == .stored)
    let removal = changes.beginRemoval(of: .name("x"))
    #expect(store(since: changes.removalCount) == .overtaken)
    changes.endRemoval(removal)
    #expect(store(since: before) == .overtaken && store(since: changes.removalCount) == .stored)
    for _ in 0..<1025 { Self.remove(.name("y"), changes) }
    #expect(store(since: before) == .unknown && store(since: changes.removalCount) == .stored)
  }

  @Test("a removal concerns its URL and fetches before it only, and very many removals are not all known")
  func removals() throws {
    let changes = ResourceChanges()
    let url = try HTTPURL("https://a.test/a?q=1")
    let key = try RequestKey.url(url, partition: "p")
    let other = try RequestKey.url(HTTPURL("https://a.test/b?q=1"), partition: "p")
    let before = changes.removalCount
    Self.remove(try CacheSelection(url: url), changes)
    let after = changes.removalCount
    func removal(of key: CacheKey, _ resource: Int64? = nil, since count: UInt64) -> ResourceChanges.Removal {
      changes.removal(of: key, resource, since: count)
    }
    #expect(removal(of: key, since: before) == .removed && removal(of: key, since: after) == .none)
    #expect(removal(of: other, since: before) == .none)
    #expect(removal(of: other, ResourceHash.of(url, isNamed: true), since: before) == .removed)
    // A response with another number belongs to another URL, although the text of its key is the same.
    #expect(removal(of: key, 2, since: before) == .none)
    for number in 0..<1023 { Self.remove(.name("\(number)"), changes) }
    #expect(removal(of: key, since: before) == .removed && removal(of: other, since: before) == .none)
    Self.remove(.name("one more"), changes)
    #expect(removal(of: other, since: before) == .unknown && removal(of: key, since: after) == .none)
  }

  @Test("the record of removals takes limited memory, also for URLs with very many parameters")
  func manyParameters() throws {
    let query = (0..<8000).map { "\($0)=1" }.joined(separator: "&")
    let selection = try CacheSelection(url: try HTTPURL("https://a.test/?" + query))
    let changes = ResourceChanges()
    let before = changes.removalCount
    for _ in 0..<100 { Self.remove(selection, changes) }
    #expect(selection.weight > 16_000)
    let last = changes.removalCount
    let key = try CacheKey(api: "x", parameters: "")
    #expect(changes.removal(of: key, nil, since: before) == .unknown)
    #expect(changes.removal(of: key, nil, since: last - 1) == .none)
  }
}
