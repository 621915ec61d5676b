/// A dictionary with a limit on the number of its entries. To make room, it drops entries that were not used
/// recently. It always keeps the most recently used entries, at least half as many as the limit.
///
/// The dictionary has two generations. Storing or reading an entry moves the entry to the recent generation.
/// When the recent generation is full, it becomes the older generation, and the previous older generation is
/// dropped. So the dictionary needs no list of its entries in the order of their use.
struct BoundedDictionary<Key: Hashable, Value> {
  /// The most entries of a generation: half of the limit.
  private let half: Int
  /// The recent generation: the entries used last, at most `half`.
  private var recent: [Key: Value] = [:]
  /// The older generation. It has no key that `recent` has.
  private var older: [Key: Value] = [:]

  /// - Parameter limit: the most entries, at least 2.
  init(limit: Int) {
    precondition(limit >= 2, "a bounded dictionary holds 2 at least, not \(limit)")
    half = limit / 2
  }

  var count: Int { recent.count + older.count }

  /// The value of a key. Reading a value counts as a use.
  mutating func value(for key: Key) -> Value? {
    if let value = recent[key] { return value }
    guard let value = older[key] else { return nil }
    store(value, for: key)
    return value
  }

  /// Stores a value for a key, and replaces the key's old value. Storing counts as a use.
  mutating func store(_ value: Value, for key: Key) {
    if recent.updateValue(value, forKey: key) != nil { return }
    older[key] = nil
    guard recent.count > half else { return }
    recent[key] = nil
    older = recent
    recent = [key: value]
  }
}
