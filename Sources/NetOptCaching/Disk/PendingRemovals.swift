/// Removals that failed because another process locked the database, or because the disk could not be
/// written. The store performs them before any other work, so that no look-up finds the entries again.
struct PendingRemovals: Sendable {
  /// A removal that failed.
  enum Removal: Sendable {
    /// Removes all entries of a key. It also stands for a removal of some entries of the key.
    case entries(of: CacheKey)
    /// Removes all entries of the store.
    case everything
  }

  /// The maximum number of keys, which bounds memory. More keys turn into the removal of everything.
  static let mostKeys = 10_000

  /// The keys whose entries are to be removed; empty when everything is to be removed.
  private(set) var keys: Set<CacheKey> = []
  /// Whether all entries of the store are to be removed.
  private(set) var isEverything = false

  /// Whether no removal is pending.
  var isEmpty: Bool { keys.isEmpty && !isEverything }

  /// Adds a removal.
  mutating func add(_ removal: Removal) {
    if case .entries(let key) = removal, !isEverything {
      keys.insert(key)
      if keys.count <= Self.mostKeys { return }
    }
    keys = []
    isEverything = true
  }
}
