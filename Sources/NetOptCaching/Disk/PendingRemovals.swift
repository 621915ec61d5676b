/// Removals that failed because another process locked the database, or because the disk could not be
/// written. The store performs them before any other work, so that no look-up finds the entries again.
struct PendingRemovals: Sendable {
  /// A removal that failed.
  enum Removal: Sendable {
    /// All entries of a key. If a removal of only some of these entries failed, the store later removes all
    /// of them, which is always safe.
    case entries(of: CacheKey)
    /// All entries of the store.
    case everything
    /// The entries of a selection. They may have other keys than the program knows.
    case selection(CacheSelection)
  }

  /// The maximum number of keys plus the `CacheSelection.weight` of the selections, which limits the memory
  /// that they take. With more, all entries of the store are to be removed instead.
  static let mostKeys = 10_000

  /// The keys whose entries are to be removed; empty when everything is to be removed.
  private(set) var keys: Set<CacheKey> = []
  /// The selections whose entries are to be removed; empty when everything is to be removed.
  private(set) var selections: Set<CacheSelection> = []
  /// The sum of `CacheSelection.weight` of `selections`.
  private var weight = 0
  /// Whether all entries of the store are to be removed.
  private(set) var isEverything = false

  /// Whether no removal is pending.
  var isEmpty: Bool { keys.isEmpty && selections.isEmpty && !isEverything }

  /// Adds a removal.
  mutating func add(_ removal: Removal) {
    if isEverything { return }
    switch removal {
    case .entries(let key): keys.insert(key)
    case .everything, .selection(.everything): isEverything = true
    case .selection(let selection):
      if selections.insert(selection).inserted { weight += selection.weight }
    }
    if !isEverything, keys.count + weight <= Self.mostKeys { return }
    (keys, selections, weight) = ([], [], 0)
    isEverything = true
  }
}
