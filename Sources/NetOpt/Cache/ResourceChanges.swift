import NetOptCaching
import NetOptCore
import NetOptLocking
import Synchronization

/// Keeps the cache from storing a response that is older than a change of the resource, or older than another
/// response. Safe from any thread.
///
/// A change of a resource (RFC 9111, section 4.4) overtakes all fetches that began before the change was
/// recorded. A response, stored or not, overtakes the responses to requests that were sent before its own
/// request. In this file, a fetch begins when its request is sent.
final class ResourceChanges: Sendable {
  /// The state of 1/256 of all keys. These keys share `changeCount` and `sharedCutoff`, and `latest` has a
  /// limit. The cache may therefore refuse a response that it could store, but never stores one that it must
  /// refuse.
  private struct Shard {
    /// The number of changes of all keys of the shard so far.
    var changeCount: UInt32 = 0
    /// What is known about the latest responses of each resource.
    var latest: [Resource: ResponseState] = [:]
    /// The keys of `latest` in the order in which they were added.
    var order: [Resource] = []
    /// The latest start of a fetch among the resources that were dropped from `latest`. No response to a
    /// fetch that began earlier is stored.
    var sharedCutoff: MonotonicInstant?

    /// Applies a change to the state of a resource in `latest`. When `latest` then has more than
    /// `maxResources` resources, removes the one that was added first.
    ///
    /// - Parameter begun: when the fetch of the recorded response began.
    mutating func record(
      _ resource: Resource, begun: MonotonicInstant, _ change: (inout ResponseState) -> Void
    ) {
      if latest[resource] == nil { order.append(resource) }
      change(&latest[resource, default: ResponseState(newest: begun)])
      guard order.count > ResourceChanges.maxResources,
        let oldest = latest.removeValue(forKey: order.removeFirst())
      else {
        return
      }
      sharedCutoff = max(sharedCutoff ?? oldest.newest, oldest.newest)
    }

    /// Whether a response must not be stored because another response has overtaken it.
    ///
    /// - Parameter begun: when the fetch of the response began.
    func isOvertaken(_ resource: Resource, begun: MonotonicInstant) -> Bool {
      if let sharedCutoff, begun < sharedCutoff { return true }
      return latest[resource]?.cutoff.map { begun < $0 } ?? false
    }
  }

  /// Stands for a key, or for one variant of the key's resource, without the text of the key, which may be
  /// many kilobytes long. Keys with equal digests count as one resource. The cache may therefore refuse a
  /// response that it could store, but never stores one that it must refuse.
  private struct Resource: Hashable {
    /// The key's hash for tables (`CacheKey.tableHash`).
    let tableHash: UInt64
    /// The digest of the key's text.
    let digest: MD5Digest
    /// A hash of the selectors of the variant; 0 for the resource as a whole.
    var variant = 0

    init(_ key: CacheKey) {
      tableHash = key.tableHash
      digest = key.digest
    }

    /// The variant of this resource with these selectors; `nil` when there are no selectors.
    func variant(_ selectors: [CacheEntry.Selector]) -> Resource? {
      if selectors.isEmpty { return nil }
      var variant = self
      variant.variant = selectors.hashValue
      return variant
    }
  }

  /// What is known about the responses of a resource or of a variant.
  private struct ResponseState {
    /// The latest start of a fetch whose response is recorded.
    var newest: MonotonicInstant
    /// Responses to fetches that began before this moment are not stored; `nil` when nothing is excluded.
    var cutoff: MonotonicInstant?
    /// A hash of the field names in the `Vary` of the response that was stored last; 0 without `Vary`. The
    /// names themselves may be many kilobytes long.
    var names = 0

    /// Records a response that is not stored. The caller then forgets the stored responses. The response to a
    /// later fetch may be among them, so `cutoff` becomes the start of the latest known fetch.
    mutating func recordUnstored(begun: MonotonicInstant) {
      newest = max(newest, begun)
      cutoff = newest
    }

    /// Records a response that is stored.
    ///
    /// - Parameters:
    ///   - begun: when the fetch of the response began.
    ///   - names: a hash of the field names in its `Vary`; 0 without `Vary`, and in the state of a variant.
    ///     If the response before it had the same names, the response replaces only its own variant, and
    ///     `cutoff` stays. With other names, or with 0, the response counts as a replacement for all earlier
    ///     responses.
    mutating func recordStored(begun: MonotonicInstant, names: Int) {
      newest = max(newest, begun)
      let replaces = names == 0 || names != self.names
      self.names = names
      guard replaces, begun > cutoff ?? MonotonicInstant(nanoseconds: .min) else { return }
      cutoff = begun
    }
  }

  /// The removals by the program that run now, and the last ones that have ended.
  private struct Removals {
    /// The selections of the removals that run, by the number of the removal.
    private(set) var running: [UInt64: CacheSelection] = [:]
    /// The number of the removal that began last.
    private var last: UInt64 = 0
    /// The selections of the removals that ended last, in the order of their ends.
    private var ended: [CacheSelection] = []
    /// The sum of `CacheSelection.weight` of the selections in `ended`.
    private var weight = 0
    /// The number of removals that ended before those in `ended`.
    private var dropped: UInt64 = 0

    /// The number of removals that have ended.
    var count: UInt64 { dropped + UInt64(ended.count) }

    /// Adds a removal that begins, and returns its number.
    mutating func begin(_ selection: CacheSelection) -> UInt64 {
      last += 1
      running[last] = selection
      return last
    }

    /// Ends a removal. Drops the removals that ended first if the record is too large.
    mutating func end(_ number: UInt64) {
      guard let selection = running.removeValue(forKey: number) else { return }
      ended.append(selection)
      weight += selection.weight
      while ended.count > ResourceChanges.maxRemovals || weight > ResourceChanges.maxRemovalWeight {
        weight -= ended.removeFirst().weight
        dropped += 1
      }
    }

    /// The known removals that run, or that ended after a count, and whether these are all of them.
    func later(than count: UInt64) -> (selections: [CacheSelection], areAll: Bool) {
      let index = count > dropped ? Int(count - dropped) : 0
      return (Array(running.values) + ended.dropFirst(index), count >= dropped)
    }
  }

  /// The maximum number of ended removals that are kept.
  private static let maxRemovals = 1024
  /// The maximum `weight` of the ended removals that are kept.
  private static let maxRemovalWeight = 65_536

  /// A shard with its lock.
  private final class LockedShard: Sendable {
    let state = Locked(Shard())
  }

  /// The maximum number of resources whose latest responses a shard keeps.
  private static let maxResources = 256
  /// The shards. The low 8 bits of a key's `tableHash` select its shard.
  private let shards = (0..<256).map { _ in LockedShard() }
  private let removals = Locked(Removals())
  /// Twice the number of ended removals, plus 1 while a removal runs. Changes under the lock of `removals`.
  private let removalState = Atomic<UInt64>(0)

  private func shardIndex(of key: CacheKey) -> Int { Int(key.tableHash & 255) }
  private func shard(of key: CacheKey) -> LockedShard { shards[shardIndex(of: key)] }

  /// The number of changes so far that count for a key. Changes of the other keys of its shard count too.
  func changeCount(of key: CacheKey) -> UInt32 { shard(of: key).state.withLock { $0.changeCount } }

  /// Whether a change of one key also increases the count of the other key.
  func areCountedTogether(_ key: CacheKey, _ other: CacheKey) -> Bool {
    shardIndex(of: key) == shardIndex(of: other)
  }

  /// Records a change of a key's resource. The caller then forgets the stored responses of the key.
  func recordChange(of key: CacheKey) { shard(of: key).state.withLock { $0.changeCount &+= 1 } }

  /// Records a change of all resources.
  func recordChangeOfAll() {
    for shard in shards { shard.state.withLock { $0.changeCount &+= 1 } }
  }

  // MARK: Removals by the program

  /// Whether the program has removed a response.
  enum Removal: Hashable {
    /// The program has not removed the response.
    case none
    /// The program has removed the response, or a removal of the response runs.
    case removed
    /// The record does not have all removals any more. The known ones do not concern the response.
    case unknown
  }

  /// The number of removals by the program that have ended. A removal takes time. A call that begins while it
  /// runs may find a removed response, so the removal counts as later than this call.
  var removalCount: UInt64 { removalState.load(ordering: .acquiring) >> 1 }

  /// Whether a removal by the program runs.
  var isRemoving: Bool { removalState.load(ordering: .acquiring) & 1 == 1 }

  /// Records a removal, before the responses are removed. When this method returns, all responses that
  /// `storeUnlessOvertaken` accepted without this removal are in the store.
  ///
  /// - Returns: the number of the removal, for `endRemoval`. The caller must call it once.
  func beginRemoval(of selection: CacheSelection) -> UInt64 {
    let number = changeRemovals { $0.begin(selection) }
    for shard in shards { shard.state.withLock { _ in } }
    return number
  }

  /// Ends a removal, after the responses were removed.
  ///
  /// - Parameter number: the result of `beginRemoval`.
  func endRemoval(_ number: UInt64) { changeRemovals { $0.end(number) } }

  /// Changes the record of removals and then `removalState`.
  private func changeRemovals<Result: Sendable>(_ change: (inout Removals) -> Result) -> Result {
    removals.withLock { removals in
      let result = change(&removals)
      let state = removals.count << 1 | (removals.running.isEmpty ? 0 : 1)
      removalState.store(state, ordering: .releasing)
      return result
    }
  }

  /// Whether the program has removed a response since a removal count. A removal that runs concerns all
  /// counts.
  ///
  /// - Parameters:
  ///   - resource: `CacheEntry.resource` of the response.
  ///   - count: an earlier `removalCount`.
  func removal(of key: CacheKey, _ resource: @autoclosure () -> Int64?, since count: UInt64) -> Removal {
    // Usually no removal runs, and none has ended since. One load is enough to see this.
    guard removalState.load(ordering: .acquiring) != count << 1 else { return .none }
    let (later, areAll) = removals.withLock { $0.later(than: count) }
    let resource = resource()
    if later.contains(where: { $0.contains(key, resource) }) { return .removed }
    return areAll ? .none : .unknown
  }

  // MARK: Responses

  /// Records a response that is not stored but makes stored responses outdated. The caller then forgets
  /// these.
  ///
  /// - Parameter begun: when the fetch of the response began.
  func recordUnstoredResponse(for key: CacheKey, begun: MonotonicInstant) {
    shard(of: key).state.withLock {
      $0.record(Resource(key), begun: begun) { $0.recordUnstored(begun: begun) }
    }
  }

  /// What `storeUnlessOvertaken` has done with a response.
  enum Storage: Hashable {
    /// The response is stored.
    case stored
    /// A change, a removal or a newer response has overtaken the response. The caller forgets all stored
    /// responses of the key: the origin may have made the refused response later than the stored ones,
    /// because a request may wait behind others on its connection.
    case overtaken
    /// The response is not stored, because the record does not have all removals since its fetch began.
    /// Probably none concerns the response. The stored responses stay.
    case unknown
  }

  /// Stores a response unless a change or a newer response has overtaken it. Runs `store` under the lock of
  /// the key's shard. So a concurrent `recordChange` or `recordUnstoredResponse` comes either before this
  /// call, which then refuses the response, or after it. In the second case its caller forgets the response
  /// that was just stored.
  ///
  /// - Parameters:
  ///   - selectors: the selectors of the response's variant.
  ///   - count: the result of `changeCount(of:)` when the fetch began.
  ///   - begun: when the fetch began.
  ///   - removal: whether the program has removed the response since the fetch began. Runs under the lock.
  ///   - store: stores the response.
  func storeUnlessOvertaken(
    _ key: CacheKey, _ selectors: [CacheEntry.Selector], since count: UInt32, begun: MonotonicInstant,
    removal: () -> Removal = { .none }, _ store: () -> Void
  ) -> Storage {
    let resource = Resource(key)
    let variant = resource.variant(selectors)
    let names = selectors.isEmpty ? 0 : Set(selectors.map(\.name)).hashValue
    return shard(of: key).state.withLock { shard in
      let isOvertaken =
        shard.changeCount != count || shard.isOvertaken(resource, begun: begun)
        || shard.latest[resource].map { $0.names != names && begun < $0.newest } ?? false
        || variant.map { shard.isOvertaken($0, begun: begun) } ?? false
      let removal = isOvertaken ? .removed : removal()
      if removal != .none {
        // The caller of the refused response sees it. A response to an earlier request must not follow it.
        shard.record(resource, begun: begun) { $0.recordUnstored(begun: begun) }
        return removal == .unknown ? .unknown : .overtaken
      }
      shard.record(resource, begun: begun) { $0.recordStored(begun: begun, names: names) }
      if let variant { shard.record(variant, begun: begun) { $0.recordStored(begun: begun, names: 0) } }
      store()
      return .stored
    }
  }
}
