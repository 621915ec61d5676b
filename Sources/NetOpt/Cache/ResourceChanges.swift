import NetOptCaching
import NetOptCore
import NetOptLocking

/// Keeps the cache from storing a response that is older than one it knows of. Safe from any thread.
///
/// A change (RFC 9111, section 4.4) overtakes all fetches that began before its answer. An answer, stored or not, overtakes the answers to requests
/// that were sent before its own. A fetch begins here when its request is sent.
final class ResourceChanges: Sendable {
  /// The state of 1/256 of all keys. These keys share `count` and `floor`, so that a response may be refused that could be stored, and never the
  /// other way round.
  private struct Place {
    var count: UInt32 = 0
    /// The latest answers of resources.
    var latest: [Resource: Answers] = [:]
    /// The keys of `latest`, oldest first.
    var order: [Resource] = []
    /// When the latest fetch began whose answer is not remembered any more: what began before it is not stored.
    var floor: MonotonicInstant?

    /// Changes what is remembered of a resource.
    mutating func note(_ resource: Resource, begun: MonotonicInstant, _ change: (inout Answers) -> Void) {
      if latest[resource] == nil { order.append(resource) }
      change(&latest[resource, default: Answers(newest: begun)])
      guard order.count > ResourceChanges.most, let oldest = latest.removeValue(forKey: order.removeFirst())
      else {
        return
      }
      floor = max(floor ?? oldest.newest, oldest.newest)
    }

    func isOvertaken(_ resource: Resource, begun: MonotonicInstant) -> Bool {
      if let floor, begun < floor { return true }
      return latest[resource]?.bar.map { begun < $0 } ?? false
    }
  }

  /// A key without its text, which may have many kilobytes. Two keys with one digest are one resource here: then a response may be refused that
  /// could be stored, and never the other way round.
  private struct Resource: Hashable {
    let place: UInt64
    let digest: MD5Digest
    /// Tells the variants of a resource apart; 0 is the resource as a whole.
    var variant = 0

    init(_ key: CacheKey) {
      place = key.place
      digest = key.digest
    }

    /// The variant that some values of fields select; `nil` when the resource has none.
    func variant(_ selectors: [CacheEntry.Selector]) -> Resource? {
      if selectors.isEmpty { return nil }
      var variant = self
      variant.variant = selectors.hashValue
      return variant
    }
  }

  /// What is known of the answers of a resource.
  private struct Answers {
    /// When the latest fetch began that has an answer.
    var newest: MonotonicInstant
    /// What was fetched before this is not stored.
    var bar: MonotonicInstant?
    /// A hash of the field names in the `Vary` of the latest stored answer; 0 without `Vary`. The names themselves may have many kilobytes.
    var names = 0

    /// An answer is not stored, and all that is stored is forgotten. That may include the answer to a later fetch, so the bar is set to the latest
    /// fetch that is known.
    mutating func forgot(begun: MonotonicInstant) {
      newest = max(newest, begun)
      bar = newest
    }

    /// An answer is stored.
    ///
    /// - Parameter names: the fields that it depends on. A variant does not replace other variants, but those that depend on other fields
    ///   cannot be compared with it.
    mutating func stored(begun: MonotonicInstant, names: Int) {
      newest = max(newest, begun)
      let replaces = names == 0 || names != self.names
      self.names = names
      guard replaces, begun > bar ?? MonotonicInstant(nanoseconds: .min) else { return }
      bar = begun
    }
  }

  private final class LockedPlace: Sendable {
    let state = Locked(Place())
  }

  /// Each place keeps the latest answers of at most so many keys.
  private static let most = 256
  private let places = (0..<256).map { _ in LockedPlace() }

  private func index(of key: CacheKey) -> Int { Int(key.place & 255) }
  private func place(of key: CacheKey) -> LockedPlace { places[index(of: key)] }

  /// The number of changes so far of a key's resource.
  func count(of key: CacheKey) -> UInt32 { place(of: key).state.withLock { $0.count } }

  /// Whether a change of one key's resource counts as one of another's.
  func areShared(_ key: CacheKey, _ other: CacheKey) -> Bool { index(of: key) == index(of: other) }

  /// Records a change of a key's resource.
  func changed(_ key: CacheKey) { place(of: key).state.withLock { $0.count &+= 1 } }

  /// Records an answer that is not stored.
  ///
  /// - Parameter begun: when the fetch began.
  func answered(_ key: CacheKey, begun: MonotonicInstant) {
    place(of: key).state.withLock { $0.note(Resource(key), begun: begun) { $0.forgot(begun: begun) } }
  }

  /// Stores a response unless a newer one, or a change, is recorded. `changed` and `answered` wait meanwhile. Their callers empty the store
  /// afterwards, so that a response that was stored just before is removed.
  ///
  /// - Parameters:
  ///   - selectors: which variant of the resource it is.
  ///   - count: how often the resource had been changed when the fetch began.
  ///   - begun: when that was.
  ///   - store: stores it.
  /// - Returns: whether the response is stored. If not, the caller forgets all that is stored of the key: the answer that overtook it was not
  ///   necessarily made later, since a request may wait behind others on its connection.
  func unlessOvertaken(
    _ key: CacheKey, _ selectors: [CacheEntry.Selector], since count: UInt32, begun: MonotonicInstant,
    _ store: () -> Void
  ) -> Bool {
    let resource = Resource(key)
    let variant = resource.variant(selectors)
    let names = selectors.isEmpty ? 0 : Set(selectors.map(\.name)).hashValue
    return place(of: key).state.withLock { place in
      let isOvertaken =
        place.count != count || place.isOvertaken(resource, begun: begun)
        || place.latest[resource].map { $0.names != names && begun < $0.newest } ?? false
        || variant.map { place.isOvertaken($0, begun: begun) } ?? false
      if isOvertaken { return false }
      place.note(resource, begun: begun) { $0.stored(begun: begun, names: names) }
      if let variant { place.note(variant, begun: begun) { $0.stored(begun: begun, names: 0) } }
      store()
      return true
    }
  }
}
