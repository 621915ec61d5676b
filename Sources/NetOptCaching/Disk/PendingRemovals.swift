/// Removals that failed because another process locked the database, or because the disk could not be
/// written. The store performs them before any other work, so that no look-up finds the entries again.
struct PendingRemovals: Sendable {
  /// A removal.
  enum Removal: Sendable {
    /// The entries of a key. A removal of some of them counts as a removal of all.
    case entries(of: CacheKey)
    /// All entries.
    case everything
  }

  /// The maximum number of keys. With more keys, the removal of everything is pending.
  static let mostKeys = 10_000

  /// The keys whose entries are to be removed; empty when everything is to be removed.
  private(set) var keys: Set<CacheKey> = []
  /// Whether everything is to be removed.
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
