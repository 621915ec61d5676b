import NetOptCaching
import NetOptCore
import NetOptLocking

/// Keeps the cache from storing a response that is older than a known response or change. Safe from any
/// thread.
///
/// A change of a resource (RFC 9111, section 4.4) overtakes all fetches that began before the change was
/// recorded. A response, stored or not, overtakes the responses to requests that were sent before its own
/// request. A fetch begins here when its request is sent.
final class ResourceChanges: Sendable {
  /// The state of 1/256 of all keys. These keys share `changeCount` and `sharedCutoff`. The cache may
  /// therefore refuse a response that it could store, but never stores one that it must refuse.
  private struct Shard {
    var changeCount: UInt32 = 0
    /// The latest responses by resource.
    var latest: [Resource: ResponseState] = [:]
    /// The keys of `latest`, oldest first.
    var order: [Resource] = []
    /// The latest start of a fetch whose response is no longer in `latest`. Responses to fetches that began
    /// before it are not stored.
    var sharedCutoff: MonotonicInstant?

    /// Changes the state of a resource, and drops the oldest resource when there are more than
    /// `maxResources`.
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

    func isOvertaken(_ resource: Resource, begun: MonotonicInstant) -> Bool {
      if let sharedCutoff, begun < sharedCutoff { return true }
      return latest[resource]?.cutoff.map { begun < $0 } ?? false
    }
  }

  /// A key without its text, which may have many kilobytes. Two keys with one digest count as one resource.
  /// The cache may therefore refuse a response that it could store, but never stores one that it must refuse.
  private struct Resource: Hashable {
    let tableHash: UInt64
    let digest: MD5Digest
    /// A hash that separates the variants of a resource; 0 for the resource as a whole.
    var variant = 0

    init(_ key: CacheKey) {
      tableHash = key.tableHash
      digest = key.digest
    }

    /// The variant that these selectors select; `nil` when there are no selectors.
    func variant(_ selectors: [CacheEntry.Selector]) -> Resource? {
      if selectors.isEmpty { return nil }
      var variant = self
      variant.variant = selectors.hashValue
      return variant
    }
  }

  /// The state of the responses of a resource.
  private struct ResponseState {
    /// The latest start of a fetch that has a response.
    var newest: MonotonicInstant
    /// Responses to fetches that began before this time are not stored.
    var cutoff: MonotonicInstant?
    /// A hash of the field names in the `Vary` of the latest stored response; 0 without `Vary`. The names
    /// themselves may have many kilobytes.
    var names = 0

    /// Records a response that is not stored, after which all stored responses are forgotten. They may
    /// include the response to a later fetch, so `cutoff` becomes the start of the latest known fetch.
    mutating func recordUnstored(begun: MonotonicInstant) {
      newest = max(newest, begun)
      cutoff = newest
    }

    /// Records a response that is stored.
    ///
    /// - Parameter names: a hash of the field names in its `Vary`. A variant does not replace other variants
    ///   with the same names. Variants with other names cannot be compared with it.
    mutating func recordStored(begun: MonotonicInstant, names: Int) {
      newest = max(newest, begun)
      let replaces = names == 0 || names != self.names
      self.names = names
      guard replaces, begun > cutoff ?? MonotonicInstant(nanoseconds: .min) else { return }
      cutoff = begun
    }
  }

  private final class LockedShard: Sendable {
    let state = Locked(Shard())
  }

  /// The maximum number of resources whose latest responses a shard keeps.
  private static let maxResources = 256
  private let shards = (0..<256).map { _ in LockedShard() }

  private func shardIndex(of key: CacheKey) -> Int { Int(key.tableHash & 255) }
  private func shard(of key: CacheKey) -> LockedShard { shards[shardIndex(of: key)] }

  /// The number of changes of a key's resource so far.
  func changeCount(of key: CacheKey) -> UInt32 { shard(of: key).state.withLock { $0.changeCount } }

  /// Whether a change of one key's resource also counts as a change of the other's.
  func areCountedTogether(_ key: CacheKey, _ other: CacheKey) -> Bool {
    shardIndex(of: key) == shardIndex(of: other)
  }

  /// Records a change of a key's resource.
  func recordChange(of key: CacheKey) { shard(of: key).state.withLock { $0.changeCount &+= 1 } }

  /// Records a response that is not stored.
  ///
  /// - Parameter begun: when the fetch of the response began.
  func recordUnstoredResponse(for key: CacheKey, begun: MonotonicInstant) {
    shard(of: key).state.withLock {
      $0.record(Resource(key), begun: begun) { $0.recordUnstored(begun: begun) }
    }
  }

  /// Stores a response unless a newer response or a change is recorded. Concurrent calls of `recordChange`
  /// and `recordUnstoredResponse` wait for the end of this call. Their callers empty the store afterwards,
  /// and so remove a response that was stored just before.
  ///
  /// - Parameters:
  ///   - selectors: the selectors of the response's variant.
  ///   - count: the number of changes of the resource when the fetch began.
  ///   - begun: when the fetch began.
  ///   - store: stores the response.
  /// - Returns: whether the response is stored. If not, the caller forgets all stored responses of the key.
  ///   The origin did not necessarily make the overtaking response later, since a request may wait behind
  ///   others on its connection.
  func storeUnlessOvertaken(
    _ key: CacheKey, _ selectors: [CacheEntry.Selector], since count: UInt32, begun: MonotonicInstant,
    _ store: () -> Void
  ) -> Bool {
    let resource = Resource(key)
    let variant = resource.variant(selectors)
    let names = selectors.isEmpty ? 0 : Set(selectors.map(\.name)).hashValue
    return shard(of: key).state.withLock { shard in
      let isOvertaken =
        shard.changeCount != count || shard.isOvertaken(resource, begun: begun)
        || shard.latest[resource].map { $0.names != names && begun < $0.newest } ?? false
        || variant.map { shard.isOvertaken($0, begun: begun) } ?? false
      if isOvertaken { return false }
      shard.record(resource, begun: begun) { $0.recordStored(begun: begun, names: names) }
      if let variant { shard.record(variant, begun: begun) { $0.recordStored(begun: begun, names: 0) } }
      store()
      return true
    }
  }
}
