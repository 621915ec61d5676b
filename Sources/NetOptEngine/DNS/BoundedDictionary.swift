/// A dictionary that keeps at least the half of its limit that was used last, and forgets the rest by itself.
///
/// There are two generations: what is stored or read moves to the recent one; when that is full it becomes the older
/// one, and what was older is forgotten. All operations take constant time, and no order of use has to be kept.
struct BoundedDictionary<Key: Hashable, Value> {
  private let half: Int
  private var recent: [Key: Value] = [:]
  private var older: [Key: Value] = [:]

  /// - Parameter limit: the most it holds, at least 2.
  init(limit: Int) {
    precondition(limit >= 2, "a bounded dictionary holds 2 at least, not \(limit)")
    half = limit / 2
  }

  var count: Int { recent.count + older.count }

  /// The value of a key, which counts as a use of it.
  mutating func value(for key: Key) -> Value? {
    if let value = recent[key] { return value }
    guard let value = older[key] else { return nil }
    store(value, for: key)
    return value
  }

  mutating func store(_ value: Value, for key: Key) {
    if recent.updateValue(value, forKey: key) != nil { return }
    older[key] = nil
    guard recent.count > half else { return }
    recent[key] = nil
    older = recent
    recent = [key: value]
  }
}
