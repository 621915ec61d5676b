import NetOptCaching
import NetOptCore
import NetOptLocking

/// Keeps the cache from storing a response that is older than one it knows of. Safe from any thread.
///
/// A change (RFC 9111, section 4.4) overtakes all fetches that began before its answer. An answer, stored or not, overtakes the fetches that
/// began before its own.
final class ResourceChanges: Sendable {
  /// The state of 1/256 of all keys. These keys share `count` and `floor`, so that a response may be refused that could be stored, and never the
  /// other way round.
  private struct Place {
    var count: UInt32 = 0
    /// The latest answers of resources.
    var latest: [CacheKey: Answer] = [:]
    /// The keys of `latest`, oldest first.
    var order: [CacheKey] = []
    /// When the latest fetch began whose answer was not stored and is not remembered: what began before it is not stored.
    var floor: MonotonicInstant?

    mutating func add(_ answer: Answer, of key: CacheKey) {
      if let known = latest[key] {
        if known.begun < answer.begun { latest[key] = answer }
        return
      }
      latest[key] = answer
      order.append(key)
      guard order.count > ResourceChanges.most, let oldest = latest.removeValue(forKey: order.removeFirst()),
        !oldest.isStored
      else { return }
      floor = max(floor ?? oldest.begun, oldest.begun)
    }

    func isOvertaken(_ key: CacheKey, begun: MonotonicInstant) -> Bool {
      if let floor, begun < floor { return true }
      return latest[key].map { begun < $0.begun } ?? false
    }
  }

  private struct Answer {
    /// When its fetch began.
    let begun: MonotonicInstant
    /// Whether it is stored. Those that are have a date as well, by which they are told from older ones.
    let isStored: Bool
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
    place(of: key).state.withLock { $0.add(Answer(begun: begun, isStored: false), of: key) }
  }

  /// Stores a response unless a newer one, or a change, is recorded. `changed` and `answered` wait meanwhile. Their callers empty the store
  /// afterwards, so that a response that was stored just before is removed.
  ///
  /// - Parameters:
  ///   - count: how often the resource had been changed when the fetch began.
  ///   - begun: when that was.
  ///   - isOnly: whether nothing else is stored of the resource, for other values of fields.
  func unlessOvertaken(
    _ key: CacheKey, since count: UInt32, begun: MonotonicInstant, isOnly: Bool, _ store: () -> Void
  ) {
    place(of: key).state.withLock { place in
      guard place.count == count, !place.isOvertaken(key, begun: begun) else { return }
      if isOnly { place.add(Answer(begun: begun, isStored: true), of: key) }
      store()
    }
  }
}
